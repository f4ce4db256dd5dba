"""Which addresses may be connected to on behalf of others: those of the internet, and what settings allow.

Who registers a URL must not reach what only this host can: its loopback, its network, the metadata of its
cloud. A name is no guide, since whoever owns it says what it resolves to, and may say so differently each
time. So addresses are checked when they are connected to.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_UNICAST = IPv6Network("2000::/3")
"""All that the internet uses; outside are the loopback, local ones, multicast, and those with an IPv4
address inside, which lead to where that leads: mapped, compatible, NAT64."""

_SPECIAL = [
    ip_network("2001::/23"),  # Teredo and other protocols, some with an IPv4 address inside
    ip_network("2002::/16"),  # 6to4, likewise
    ip_network("192.88.99.0/24"),  # and its relays
    ip_network("192.0.0.0/24"),  # more protocols
    ip_network("3fff::/20"),  # documentation
]
"""What Python takes for a part of the internet, or some versions of it do."""


class Addresses:
    """The addresses that are allowed."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        """`allow`: networks beside the internet, such as `127.0.0.1/32`; `ValueError` if one is none."""
        self._networks = [ip_network(network) for network in allow]

    @property
    def any_named(self) -> bool:
        """Whether the settings name any."""
        return bool(self._networks)

    def named(self, address: str) -> bool:
        """Whether the settings name an address."""
        return self._named(_parsed(address))

    def allowed(self, address: str) -> bool:
        """Whether an address may be connected to."""
        parsed = _parsed(address)
        return self._named(parsed) or _public(parsed)

    def _named(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _parsed(address: str) -> Address:
    # A zone (`%eth0`) says which link a local address is on.
    return ip_address(address.partition("%")[0])


def _public(address: Address) -> bool:
    if not address.is_global or any(address in network for network in _SPECIAL):
        return False
    if isinstance(address, IPv4Address):
        return not (address.is_multicast or address.is_reserved)
    return address in _UNICAST
