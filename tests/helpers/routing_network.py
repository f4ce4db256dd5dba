"""Networks of brokers in memory that route by interest: no files, no Spark, no database.

What a broker does in several steps is several steps here, so that a test can do others in between.
"""

import copy
import secrets
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tamis.errors import CatalogError
from tamis.model.route import ROUTE_REVISION
from tamis.model.version import Version
from tamis.network.routing import Routing
from tamis.network.routing_ports import Shown
from tamis.network.tables import EMPTY, EVERYTHING, TableVersion, TenantRow, changed_hash
from tamis.network.topology import DirectoryCarrier, Link, Topology
from tests.helpers.routing_oracle import Message, matches


@dataclass
class Added:
    """Rows as a record batch gives them."""

    rows: list[dict[str, Any]]

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.rows


@dataclass
class Changes:
    catalog: str
    version: Version
    since: Version | None
    removed: list[int]
    added: list[Added]
    tables: Mapping[str, TableVersion]


@dataclass
class Content:
    """What a catalog has; copied as a whole."""

    count: int = 0
    number: int = 0
    marks: dict[int, str] = field(default_factory=lambda: {0: secrets.token_hex(4)})
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: dict[str, dict[TenantRow, dict[str, Any]]] = field(default_factory=dict)
    tables: dict[str, TableVersion] = field(default_factory=dict)
    removals: list[tuple[int, int]] = field(default_factory=list)
    established: dict[str, int] = field(default_factory=dict)

    def change(self) -> None:
        self.count += 1
        self.marks = {one: mark for one, mark in self.marks.items() if one < self.count}
        self.marks[self.count] = secrets.token_hex(4)

    def row(self, id: str, revision: int, tenant: str, query: str) -> dict[str, Any]:
        self.number += 1
        fixed = {"number": self.number, "id": id, "revision": revision, "tenant": tenant}
        return fixed | {"query": query, "prefixes": "{}", "version": self.count}

    @property
    def rows(self) -> list[dict[str, Any]]:
        routes = (row for rows in self.routes.values() for row in rows.values())
        return [*self.subscriptions.values(), *routes]


class MemoryCatalog:
    """A catalog; it may be away."""

    def __init__(self) -> None:
        self.content = Content()
        self._copy = copy.deepcopy(self.content)
        self.away = False

    @property
    def routes(self) -> "MemoryCatalog":
        return self

    @contextmanager
    def changes(self, since: Version | None) -> Iterator[Changes]:
        self._check()
        now = self.content
        if since is not None and now.marks.get(since.count) != since.mark:
            since = None
        after = -1 if since is None else since.count
        removed = [] if since is None else [number for at, number in now.removals if at > after]
        added = [Added([row for row in now.rows if row["version"] > after])]
        yield Changes("c", Version(now.count, now.marks[now.count]), since, removed, added, dict(now.tables))

    def copy(self) -> None:
        """Keep a copy of the database."""
        self._copy = copy.deepcopy(self.content)

    def restore(self) -> None:
        """Put the copy in its place."""
        self.content = copy.deepcopy(self._copy)

    def subscribe(self, id: str, tenant: str, query: str) -> None:
        self.content.change()
        self.content.subscriptions[id] = self.content.row(id, 1, tenant, query)

    def unsubscribe(self, id: str) -> None:
        self.content.change()
        row = self.content.subscriptions.pop(id)
        self.content.removals.append((self.content.count, row["number"]))

    # As `tamis.catalog.routes.Routes`

    def tables(self) -> Mapping[str, TableVersion]:
        self._check()
        return self.content.tables

    def keep(self, links: Collection[str]) -> None:
        self._check()

    def establish(self, versions: Mapping[str, int]) -> None:
        self._check()
        self.content.established = dict(versions)

    def replace(self, link: str, version: TableVersion, wanted: Collection[TenantRow]) -> bool:
        self._check()
        if version.hash not in (EVERYTHING, changed_hash(EMPTY, wanted, ())):
            return False
        known = self.content.routes.get(link, {})
        self._write(link, version, set(wanted) - known.keys(), known.keys() - set(wanted))
        return True

    def change(
        self,
        link: str,
        since: TableVersion,
        version: TableVersion,
        added: Collection[TenantRow],
        removed: Collection[TenantRow],
    ) -> bool:
        self._check()
        known = self.content.routes.get(link, {})
        right = self.content.tables.get(link) == since and set(removed) <= known.keys()
        if not right or known.keys() & set(added) or version.hash != changed_hash(since.hash, added, removed):
            return False
        if added or removed:
            self._write(link, version, added, removed)
        self.content.tables[link] = version
        return True

    def _write(
        self, link: str, version: TableVersion, added: Collection[TenantRow], removed: Collection[TenantRow]
    ) -> None:
        now = self.content
        now.change()
        rows = now.routes.setdefault(link, {})
        for one in list(removed):
            now.removals.append((now.count, rows.pop(one)["number"]))
        for one in added:
            rows[one] = now.row(link, ROUTE_REVISION, *one)
        now.tables[link] = version

    def _check(self) -> None:
        if self.away:
            raise CatalogError("catalog-unreachable", "a test")


@dataclass
class Generation:
    shown: Shown
    rows: list[dict[str, Any]]


@dataclass
class Batch:
    """Messages of one source, and the generation that they are matched against."""

    messages: list[Message]
    generation: Generation


class Wire:
    """The parcels of one direction of a link."""

    def __init__(self) -> None:
        self.parcels: deque[list[Message] | bytes] = deque()
        self.epoch = "1"
        self.is_full = False
        self.in_vain = 0
        self.history: list[list[Message] | bytes] = []
        """What was received."""

    def send(self, notice: bytes) -> None:
        self.parcels.append(notice)


class SimBroker:
    """One broker. Its catalog, generations, batches and parcels survive a restart."""

    def __init__(self, network: "SimNetwork", name: str) -> None:
        self.name = name
        self.catalog = MemoryCatalog()
        self.generation: Generation | None = None
        self.accepted: list[Message] = []
        self.arrived: list[Message] = []
        self.batches: list[Batch] = []
        self._network = network
        self.restart()

    def restart(self) -> None:
        links = self._network.topology.links_of(self.name)
        ports = [(link, self._network.wires[self.name, link.other(self.name)]) for link in links]
        patience = self._network.is_patient
        self.routing = Routing(
            self.name, ports, self.catalog, self.publish, lambda: patience, budget=self._network.budget
        )

    def subscribe(self, id: str, tenant: str, query: str) -> None:
        self.catalog.subscribe(id, tenant, query)

    def unsubscribe(self, id: str) -> None:
        self.catalog.unsubscribe(id)

    def is_established(self, id: str, root: str) -> bool:
        content = self.catalog.content
        return content.established.get(root, -1) >= int(content.subscriptions[id]["version"])

    def publish(self) -> Shown:
        """A generation of the catalog."""
        with self.catalog.changes(None) as changes:
            tables = {link: one.hash for link, one in changes.tables.items() if one.hash != EVERYTHING}
            shown = Shown("c", changes.version, tables)
            self.generation = Generation(shown, copy.deepcopy(changes.added[0].rows))
        return shown

    def step(self) -> None:
        with suppress(CatalogError):
            self.routing.step()

    def begin(self, *, own: bool) -> None:
        """Begin a batch: of accepted messages, or of those that arrived."""
        messages = self.accepted if own else self.arrived
        if not self.catalog.away:
            self.publish()
        if messages and self.generation is not None:
            self.batches.append(Batch(list(messages), self.generation))
            messages.clear()

    def finish(self) -> None:
        """Finish the oldest batch."""
        if self.batches:
            batch = self.batches.pop(0)
            found = [(message, self._targets(batch, message)) for message in batch.messages]
            routed = self.routing.routed_links(batch.generation.shown.tables)
            for link in self._network.topology.links_of(self.name):
                behind = self._network.topology.behind(self.name, link)
                crossing = [
                    message
                    for message, targets in found
                    if message.root not in behind
                    and link.carries(message.tenant)
                    and (link.name not in routed or (ROUTE_REVISION, link.name) in targets)
                ]
                if crossing:
                    wire = self._network.wires[self.name, link.other(self.name)]
                    wire.parcels.append(crossing)
                    self._network.crossed.setdefault((self.name, link.other(self.name)), []).extend(crossing)
            for message, targets in found:
                self._network.delivered.update((message.id, id) for revision, id in targets if revision)

    def _targets(self, batch: Batch, message: Message) -> set[tuple[int, str]]:
        return {
            (row["revision"], row["id"])
            for row in batch.generation.rows
            if row["tenant"] == message.tenant and matches(row["query"], message.text)
        }


class SimNetwork:
    """A tree of brokers."""

    def __init__(
        self, *ends: str, tenants: Mapping[str, frozenset[str]] | None = None, budget: int | None = None
    ) -> None:
        names = sorted(set("".join(ends)))
        barred = tenants or {}
        links = [Link((one[0], one[1]), DirectoryCarrier(one), 1, barred.get(one)) for one in ends]
        self.topology = Topology(tuple(names), tuple(links))
        self.wires = {(pair[0], pair[1]): Wire() for one in ends for pair in (one, one[::-1])}
        self.delivered: Counter[tuple[int, str]] = Counter()
        self.crossed: dict[tuple[str, str], list[Message]] = {}
        self.is_patient = False
        self.budget = budget
        self.brokers = {name: SimBroker(self, name) for name in names}

    def receive(self, sender: str, receiver: str) -> None:
        """The next parcel of a link arrives."""
        wire, broker = self.wires[sender, receiver], self.brokers[receiver]
        if wire.parcels:
            parcel = wire.parcels.popleft()
            wire.history.append(parcel)
            if isinstance(parcel, bytes):
                broker.routing.receive(".".join(sorted((sender, receiver))), parcel)
            else:
                broker.arrived += parcel

    def settle(self) -> None:
        """Everything, until nothing is left to do."""
        before: object = None
        while (now := self._progress()) != before:
            before = now
            for broker in self.brokers.values():
                broker.step()
                for own in (True, False):
                    broker.begin(own=own)
                while broker.batches:
                    broker.finish()
            for one in self.wires:
                while self.wires[one].parcels:
                    self.receive(*one)

    def _progress(self) -> object:
        waiting = [(len(one.accepted), len(one.arrived), len(one.batches)) for one in self.brokers.values()]
        established = [dict(one.catalog.content.established) for one in self.brokers.values()]
        received = [len(wire.history) for wire in self.wires.values()]
        return waiting, established, received, self.delivered.total()
