"""The broker's links in a job: publishes batches to them, and reports their state to the status board."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial

from tamis.catalog import Catalog
from tamis.errors import TamisError
from tamis.generations.store import Store
from tamis.model.sample import Sampled
from tamis.network.exchange import Exchange
from tamis.network.limits import check_limits
from tamis.network.link_end import LinkEnd, LinkStatus, open_links
from tamis.network.parcel import LinkError
from tamis.network.routing import Routing
from tamis.network.routing_ports import Shown
from tamis.network.routing_thread import RoutingThread
from tamis.network.topology import read_topology
from tamis.settings import BrokerSettings, Input, Settings
from tamis.sources.arrivals import NAME, ArrivalsSource
from tamis.spark.connectors.links import publish_parcels
from tamis.spark.pipeline import Write
from tamis.status import LinkReport, StatusBoard

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds for which a starting broker waits for its neighbours before it tells others to send everything."""

TICK = 0.1
"""Seconds between two looks at a full log."""

GENERATIONS = 16
"""The tables of so many generations are remembered."""


class BrokerLinks:
    """All ends of links; none if the settings have no `[broker]`."""

    def __init__(self, settings: Settings, board: StatusBoard) -> None:
        self._broker = settings.broker
        self._board = board
        self._ends = () if settings.broker is None else _open(settings, settings.broker)
        self._lock = threading.Lock()
        self._down: set[str] = set()
        self._routing: Routing | None = None
        store = Store(settings.generations)
        self._tables = lru_cache(GENERATIONS)(lambda number: store.manifest(number).tables)

    def publisher(self, source: Input) -> Write | None:
        """The function that publishes a source's batches to the links; None if none can cross a link."""
        if self._broker is None or not self._ends:
            return None
        # Messages that arrived over a broker's only link cross no other link.
        if isinstance(source, ArrivalsSource) and len(self._ends) == 1:
            return None
        return partial(publish_parcels, self._broker.name, self._ends, self._routed)

    def wait_for_room(self, source: Input, stopping: Callable[[], bool]) -> None:
        """Wait while the log of a link is full; messages that are under way in the network never wait."""
        if self._routing is None or isinstance(source, ArrivalsSource):
            return
        waits: frozenset[str] = frozenset()
        while not stopping() and (links := self._routing.pressed_by):
            if links != waits:
                log.warning("source %s waits: the logs of links are full: %s", source.name, ", ".join(links))
                waits = links
            time.sleep(TICK)

    def count(self, source: Input, unmatched: int) -> None:
        """A batch has messages that no subscription matches: over a broker's only link they came in vain."""
        if isinstance(source, ArrivalsSource) and len(self._ends) == 1:
            self._ends[0].traffic.in_vain += unmatched

    def open_routing(
        self,
        catalog: Catalog,
        publish: Callable[[], Shown | None],
        is_patient: Callable[[], bool] = lambda: False,
        sample: Callable[[], Sequence[Sampled]] = tuple,
    ) -> Routing | None:
        """What the neighbours want, which each of them is sent from now on; None if there are none.

        `publish` makes a generation of the catalog if it changed, and returns what the newest shows.
        """
        if self._broker is not None and self._ends:
            ports = [(end.link, end) for end in self._ends]
            self._routing = Routing(
                self._broker.name,
                ports,
                catalog,
                publish,
                is_patient,
                budget=self._broker.rows,
                sample=lambda: [(one.tenant, one.message) for one in sample()],
            )
            for end in self._ends:
                end.on_notice = partial(self._routing.receive, end.link.name)
        return self._routing

    def start(
        self,
        catalog: Catalog,
        publish: Callable[[], Shown | None],
        sample: Callable[[], Sequence[Sampled]],
    ) -> ExitStack:
        """Exchange parcels until the result is closed; `sample`: messages, by which rows are replaced."""
        stack = ExitStack()
        end_of_patience = time.monotonic() + PATIENCE
        routing = self.open_routing(catalog, publish, lambda: time.monotonic() < end_of_patience, sample)
        if routing is not None:
            thread = RoutingThread(routing, self._routing_failed)
            stack.callback(thread.close)
            for end in self._ends:
                end.on_notice = partial(thread.receive, end.link.name)
        stack.callback(Exchange(self._ends, self._changed).close)
        return stack

    def report(self) -> None:
        """Show the links on the board as they are now."""
        if self._ends:
            self._board.links([self._report_of(end) for end in self._ends])

    def _report_of(self, end: LinkEnd) -> LinkReport:
        status, traffic = end.status, end.traffic
        known = None if self._routing is None else self._routing.neighbours[status.link]
        return LinkReport(
            link=status.link,
            neighbour=status.neighbour,
            state=status.state,
            code=status.code,
            reason=status.reason or (known.problem if known else ""),
            waiting=status.sent - status.acknowledged,
            waiting_bytes=status.waiting_bytes,
            most_bytes=end.most_bytes,
            pressed=self._routing is not None and end.link.name in self._routing.pressed_by,
            routed=self._routing is not None and self._routing.is_routed(status.link),
            routes=known.routes if known else 0,
            agreed=known.agrees if known else False,
            offered=traffic.offered,
            messages=traffic.messages,
            bytes=traffic.bytes,
            received=traffic.received,
            in_vain=traffic.in_vain,
        )

    def _routed(self, generation: int) -> frozenset[str]:
        """The links that are sent only what matches their routes in a generation."""
        return frozenset() if self._routing is None else self._routing.routed_links(self._tables(generation))

    def _changed(self, status: LinkStatus) -> None:
        """Show a link that does not work as a failure of the source of arrivals."""
        error = LinkError(status.code, f"link {status.link}: {status.reason}")
        self._report(status.link, None if status.state == "up" else error)

    def _routing_failed(self, error: TamisError | None) -> None:
        self._report("routing", error)

    def _report(self, part: str, error: TamisError | None) -> None:
        """One of several parts works, or does not."""
        with self._lock:
            if error is None:
                self._down.discard(part)
            else:
                self._down.add(part)
                self._board.failed(NAME, error)
            if not self._down:
                self._board.recovered(NAME)


def _open(settings: Settings, broker: BrokerSettings) -> Sequence[LinkEnd]:
    topology = read_topology(broker.network)
    if broker.name not in topology.brokers:
        reason = (
            f"{broker.network} has no [[broker]] called {broker.name!r}, as [broker] of the settings says"
        )
        raise LinkError("unknown-broker", reason)
    sources = [(source.name, source.limits) for source in settings.sources]
    check_limits(topology.limits, broker.limits, sources, str(broker.network))
    return open_links(
        topology,
        broker.name,
        settings.links,
        most_hops=broker.hops,
        client=broker.client,
        most_bytes=broker.log,
    )
