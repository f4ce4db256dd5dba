"""Networks of brokers with real catalogs, generations, logs and arrivals: all that a job has, but Spark."""

from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from tamis.catalog import Catalog
from tamis.generations.opener import open_generation
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.matching import Generation
from tamis.model.route import ROUTE_REVISION
from tamis.model.subscription import NewSubscription
from tamis.network.arrivals import ArrivedMessages
from tamis.network.link_end import WANTED, LinkEnd, open_links
from tamis.network.messages import MESSAGES
from tamis.network.routing import Routing
from tamis.network.routing_ports import Shown
from tests.helpers.link_ends import message, tree
from tests.helpers.routing_oracle import Message

RECEIVED = datetime(2026, 1, 1, tzinfo=UTC)


class RealBroker:
    """What is in its folder survives a restart; and how far it has processed what arrived."""

    def __init__(self, network: "RealNetwork", name: str) -> None:
        self.name = name
        self.accepted: list[Message] = []
        self._network = network
        self._folder = network.folder / name
        self._batches = 0
        self._begun: list[Message] = []
        """The messages of the batch that is repeated."""
        self._generations: dict[str, int] = {}
        """By batch: what it is matched against, also when it is repeated."""
        self._processed = 0
        self._stack = ExitStack()
        self.restart()

    def restart(self) -> None:
        """Open everything again, as a new process does."""
        self._stack.close()
        self.catalog = self._stack.enter_context(Catalog(f"{self._folder}.db"))
        store = Store(str(self._folder / "generations"))
        self._publisher = self._stack.enter_context(
            Publisher(self.catalog, store, self._folder / "generations")
        )
        topology = self._network.topology
        self.ends: dict[str, LinkEnd] = {
            end.status.neighbour: end
            for end in open_links(topology, self.name, self._folder / "network", keep=0)
        }
        ports = [(end.link, end) for end in self.ends.values()]
        self.routing = Routing(self.name, ports, self.catalog, self._publish)
        for end in self.ends.values():
            end.on_notice = partial(self.routing.receive, end.link.name)
        self._arrived = ArrivedMessages(self._folder / "network")

    def close(self) -> None:
        self._stack.close()

    def subscribe(self, id: str, tenant: str, query: str) -> None:
        self.catalog.add(NewSubscription("bob", query, id, tenant))

    def unsubscribe(self, id: str) -> None:
        for one in self.catalog.list(limit=1000):
            if one.id == id:
                self.catalog.remove(id, tenant=one.tenant)

    def is_established(self, id: str, root: str) -> bool:
        (one,) = (one for one in self.catalog.list(limit=1000) if one.id == id)
        return root in self.catalog.routes.established_of(one, self._network.topology.brokers).brokers

    def exchange(self) -> None:
        for end in self.ends.values():
            end.exchange()
            assert end.status.state == "up", end.status

    def process(self, *, done: bool = True) -> None:
        """A batch of what was accepted, and one of each arrival; without `done`, they are repeated later."""
        if not self._begun:
            self._begun, self.accepted = self.accepted, []
        if self._begun:
            self._batch(f"own:{self._batches}", self._table(self._begun), done=done)
            if done:
                self._begun = []
                self._batches += 1
        for number in range(self._processed, self._arrived.next()):
            table = self._arrived.read(number).select(MESSAGES.names)
            self._batch(f"arrivals:{number}", table, done=done)
            if not done:
                return
            self._processed = number + 1
            self._arrived.remove(number + 1)

    def waiting(self) -> int:
        """Notices and messages that are on their way, or not processed."""
        return len(self.accepted) + len(self._begun) + self._arrived.next() - self._processed

    def _publish(self) -> Shown | None:
        self._publisher.refresh()
        return self._publisher.shown

    def _batch(self, key: str, table: pa.Table, *, done: bool) -> None:
        """As the job does it: match, publish parcels, deliver."""
        number = self._generations.setdefault(key, self._publisher.refresh())
        opened = open_generation(Generation(self._publisher.store.url, number, stored=True))
        recipients = []
        for row in table.to_pylist():
            targets = opened.index.match(row["xml"], tenant=row["tenant"])
            recipients.append(opened.subscriptions.look_up(pa.array(targets, pa.uint64())).to_pylist())
        routed = self.routing.routed_links(self._publisher.store.manifest(number).tables)
        for neighbour, end in self.ends.items():
            messages = table
            if end.link.name in routed:
                wanted = [
                    any(one["revision"] == ROUTE_REVISION and one["id"] == end.link.name for one in some)
                    for some in recipients
                ]
                messages = table.append_column(WANTED, pa.array(wanted, pa.bool_()))
            before = end.traffic.messages
            end.publish(key, messages)
            if end.traffic.messages > before:
                self._note_crossing(neighbour, messages)
        if done:
            for row, some in zip(table.to_pylist(), recipients, strict=True):
                ids = (one["id"] for one in some if one["revision"] != ROUTE_REVISION)
                self._network.delivered.update((int(row["id"]), id) for id in ids)

    def _note_crossing(self, neighbour: str, messages: pa.Table) -> None:
        behind = self._network.topology.behind(self.name, self.ends[neighbour].link)
        crossed = self._network.crossed.setdefault((self.name, neighbour), [])
        for row in messages.to_pylist():
            if row["broker"] not in behind and row.get(WANTED, True):
                crossed.append(Message(int(row["id"]), row["tenant"], row["xml"].decode(), row["broker"]))

    def _table(self, messages: list[Message]) -> pa.Table:
        rows = [message(self.name, str(one.id), one.text, tenant=one.tenant) for one in messages]
        return pa.Table.from_pylist(rows, schema=MESSAGES)


class RealNetwork:
    """A tree of brokers in a folder."""

    def __init__(self, folder: Path, *ends: str) -> None:
        self.folder = folder
        self.budget: int | None = None
        self.topology = tree(folder, *ends)
        self.delivered: Counter[tuple[int, str]] = Counter()
        self.crossed: dict[tuple[str, str], list[Message]] = {}
        self.brokers = {name: RealBroker(self, name) for name in self.topology.brokers}

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()

    def settle(self) -> None:
        """Everything, until nothing is left to do."""
        before: object = None
        while (now := self._progress()) != before:
            before = now
            for broker in self.brokers.values():
                broker.exchange()
                broker.routing.step()
                broker.process()
                broker.exchange()

    def _progress(self) -> object:
        sent = [
            (end.status.sent, end.status.received, end.status.epoch)
            for broker in self.brokers.values()
            for end in broker.ends.values()
        ]
        waiting = [broker.waiting() for broker in self.brokers.values()]
        established = [dict(broker.catalog.routes.established()) for broker in self.brokers.values()]
        return sent, waiting, established, self.delivered.total()
