"""What carries the parcels of a link; every carrier has the same methods.

The log of what an end sends is a directory in any case (`LinkLog`). A shared directory keeps it where the
other end reads it; another carrier keeps it beside the broker, and copies its parcels.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from tamis.extras import require
from tamis.network.log import LinkLog, read_log
from tamis.network.parcel import Parcel, Position
from tamis.network.topology import DirectoryCarrier, KafkaCarrier, Link


class Carrier(Protocol):
    """One end of a link."""

    @property
    def log(self) -> LinkLog:
        """The log of what this end sends."""

    def push(self) -> None:
        """Hand over the parcels of the log that are not acknowledged."""

    def incoming(self, after: Position | None, has: Callable[[str], bool]) -> Iterator[Parcel]:
        """What the other end has sent after a position; `has`: whether a parcel with a hash is stored.

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

    def incoming(self, after: Position | None, has: Callable[[str], bool]) -> Iterator[Parcel]:
        return read_log(self._incoming, after)

    def close(self) -> None:
        pass


def open_carrier(link: Link, broker: str, state: Path, client: Mapping[str, str]) -> Carrier:
    """The end of a link at a broker; `client`: settings of this broker's Kafka clients."""
    neighbour = link.other(broker)
    if isinstance(link.carrier, KafkaCarrier):
        require("kafka")
        # Not installed everywhere, and it takes time to import.
        from tamis.network.kafka_link import KafkaEnd

        return KafkaEnd(link.carrier, broker, neighbour, state, client)
    return SharedDirectory(link.carrier, broker, neighbour)
