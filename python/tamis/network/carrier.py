"""What carries the parcels of a link; every carrier has the same methods.

The log of what an end sends is a directory in any case (`LinkLog`). A shared directory keeps it where the
other end reads it; another carrier keeps it beside the broker, and copies its parcels.
"""

from collections.abc import Iterator
from typing import Protocol

from tamis.network.log import LinkLog, read_log
from tamis.network.parcel import Parcel, Position
from tamis.network.topology import DirectoryCarrier, Link


class Carrier(Protocol):
    """One end of a link."""

    @property
    def log(self) -> LinkLog:
        """The log of what this end sends."""

    def push(self) -> None:
        """Hand over the parcels of the log that are not acknowledged."""

    def incoming(self, after: Position | None) -> Iterator[Parcel]:
        """What the other end has sent after a position.

        `UnknownPositionError` if its log does not know the position. `LinkError` if it cannot be continued.
        """

    def close(self) -> None: ...


class SharedDirectory:
    """A log for each direction, `SENDER.RECEIVER`, in one directory."""

    def __init__(self, carrier: DirectoryCarrier, broker: str, neighbour: str) -> None:
        self.log = LinkLog(f"{carrier.path}/{broker}.{neighbour}")
        self._incoming = f"{carrier.path}/{neighbour}.{broker}"

    def push(self) -> None:
        """Parcels are where the other end reads them."""

    def incoming(self, after: Position | None) -> Iterator[Parcel]:
        return read_log(self._incoming, after)

    def close(self) -> None:
        pass


def open_carrier(link: Link, broker: str) -> Carrier:
    """The end of a link at a broker."""
    neighbour = link.other(broker)
    return SharedDirectory(link.carrier, broker, neighbour)
