"""The broker's links in a job: publishes batches to them, and reports their state to the status board."""

import threading
from collections.abc import Sequence
from functools import partial

from tamis.network.exchange import Exchange
from tamis.network.link_end import LinkEnd, LinkStatus, open_links
from tamis.network.parcel import LinkError
from tamis.network.topology import read_topology
from tamis.settings import BrokerSettings, Input, Settings
from tamis.sources.arrivals import NAME, ArrivalsSource
from tamis.spark.connectors.links import publish_parcels
from tamis.spark.pipeline import Write
from tamis.status import StatusBoard


class BrokerLinks:
    """All ends of links; none if the settings have no `[broker]`."""

    def __init__(self, settings: Settings, board: StatusBoard) -> None:
        self._broker = settings.broker
        self._board = board
        self._ends = () if settings.broker is None else _open(settings, settings.broker)
        self._lock = threading.Lock()
        self._down: set[str] = set()

    def publisher(self, source: Input) -> Write | None:
        """The function that publishes a source's batches to the links; None if none can cross a link."""
        if self._broker is None or not self._ends:
            return None
        # Messages that arrived over a broker's only link cross no other link.
        if isinstance(source, ArrivalsSource) and len(self._ends) == 1:
            return None
        return partial(publish_parcels, self._broker.name, self._ends)

    def start(self) -> Exchange:
        """Exchange parcels until the result is closed."""
        return Exchange(self._ends, self._changed)

    def _changed(self, status: LinkStatus) -> None:
        """Show a link that does not work as a failure of the source of arrivals."""
        with self._lock:
            if status.state == "up":
                self._down.discard(status.link)
            else:
                self._down.add(status.link)
                self._board.failed(NAME, LinkError(status.code, f"link {status.link}: {status.reason}"))
            if not self._down:
                self._board.recovered(NAME)


def _open(settings: Settings, broker: BrokerSettings) -> Sequence[LinkEnd]:
    topology = read_topology(broker.network)
    if broker.name not in topology.brokers:
        reason = (
            f"{broker.network} has no [[broker]] called {broker.name!r}, as [broker] of the settings says"
        )
        raise LinkError("unknown-broker", reason)
    return open_links(topology, broker.name, settings.links, most_hops=broker.hops)
