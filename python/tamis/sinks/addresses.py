"""Which addresses webhooks may use: public ones, and the networks that the settings list. Prevents SSRF.

A subscriber who registers a URL must not reach what only this host can: its loopback, its network, the
metadata service of its cloud. Checking names is not enough: the owner of a name controls what it resolves to,
and can change it at any time (DNS rebinding). So addresses are checked when a connection is made.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_UNICAST = IPv6Network("2000::/3")
"""Global unicast. Outside it are loopback, link-local and multicast addresses, and those that embed an IPv4
address: mapped, compatible, NAT64."""

_SPECIAL = [
    ip_network("2001::/23"),  # Teredo and other protocols, some with an embedded IPv4 address
    ip_network("2002::/16"),  # 6to4, with an embedded IPv4 address
    ip_network("192.88.99.0/24"),  # 6to4 relays
    ip_network("192.0.0.0/24"),  # protocol assignments
    ip_network("3fff::/20"),  # documentation
]
"""Networks that some versions of Python call global although they are not."""


class Addresses:
    """The addresses that webhooks may use."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        """`allow`: networks besides public ones, such as `127.0.0.1/32`; `ValueError` if one is malformed."""
        self._networks = [ip_network(network) for network in allow]

    @property
    def lists_any(self) -> bool:
        """Whether the settings list any network."""
        return bool(self._networks)

    def is_listed(self, address: str) -> bool:
        """Whether an address is in a network that the settings list."""
        return self._is_listed(_parsed(address))

    def is_allowed(self, address: str) -> bool:
        """Whether an address may be connected to."""
        parsed = _parsed(address)
        return self._is_listed(parsed) or _public(parsed)

    def _is_listed(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _parsed(address: str) -> Address:
    # A zone (`%eth0`) names the interface of a link-local address.
    return ip_address(address.partition("%")[0])


def _public(address: Address) -> bool:
    if not address.is_global or any(address in network for network in _SPECIAL):
        return False
    if isinstance(address, IPv4Address):
        return not (address.is_multicast or address.is_reserved)
    return address in _UNICAST
