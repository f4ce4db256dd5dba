"""What neighbours want, and what is advertised to them. A state machine without threads.

    notices of neighbours → tables of routes in the catalog → a published generation → acknowledgements
    subscriptions and routes of that generation → tables advertised to neighbours → their acknowledgements

One `step` does all there is to do. These rules make that nothing is missed:

- A link is sent only what its table asks for if this process has the neighbour's word that the table is in
  use (`routed_links`). Until then it is sent everything, and other neighbours are asked to send everything.
- A table is acknowledged, and advertised to other neighbours, once the newest generation shows it: every
  later batch is matched against that generation or a newer one.
- A broker that begins again believes only answers to its own question (`Hello.nonce`).

Pressure goes the other way than messages: a broker whose log for a link is full, or that hears so from the
neighbour behind it, tells its other neighbours. Roots wait (`Routing.pressed_by`), what is under way does
not.

Cost: a step reads what changed in the catalog; the work follows the change (`InterestTable`).
"""

import json
import logging
import queue
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tamis.errors import QueryError
from tamis.model.route import ROUTE_REVISION
from tamis.model.version import Version
from tamis.network.advert import Advert, Token
from tamis.network.interest import Row, rows_of
from tamis.network.notices import Hello, InForce, Notice, Pressure, TableChange, decode, encode
from tamis.network.parcel import LinkError
from tamis.network.routing_ports import Catalog, Port, Shown
from tamis.network.tables import EVERYTHING, TableVersion
from tamis.network.topology import Link

log = logging.getLogger(__name__)

REVISE_AFTER = 100
"""After so many messages in vain, the rows that replace others are chosen again, with a newer sample."""

OWN = ""
"""The origin of this broker's subscriptions among the names of links."""


@dataclass
class Neighbour:
    """What is known about the broker at the other end of a link."""

    broker: str
    """This one."""
    link: Link
    port: Port
    advert: Advert
    nonce: str = ""
    """Of the last hello to it."""
    usable: tuple[TableVersion, ...] = ()
    """Versions of its table that it said to this process are in use, but for those before an acknowledged
    one. The newest is last."""
    their_nonce: str | None = None
    """Of its last hello; None: it has not said what it has."""
    have: TableVersion | None = None
    """The advertised version that it has, by that hello."""
    advertised: TableVersion | None = None
    """The version advertised to it since; None if none was."""
    counts: dict[str, int] = field(default_factory=dict)
    """By broker behind it: the advertised count that is in force there."""
    reported: InForce | None = None
    """The last acknowledgement to it."""
    epoch: str = ""
    """The log that the last hello was sent in."""
    problem: str = ""
    """Why its table cannot be used; it is sent everything."""
    routes: int = 0
    """How many rows its table has."""
    in_vain: int = 0
    """The messages from it that had come in vain when wider rows were chosen last."""
    presses: bool = False
    """Whether it said that the log of a link behind it is full."""
    is_pressed: bool = False
    """Whether that was said to it."""

    @property
    def agrees(self) -> bool:
        """Whether it has acknowledged what was advertised to it last."""
        last = self.advertised
        return last is not None and self.counts.get(self.link.other(self.broker), -1) >= last.count

    @property
    def name(self) -> str:
        return self.link.name

    def can_use(self, table: TableVersion | None) -> bool:
        return table is not None and table in self.usable


class Routing:
    """The routing of one broker. `receive` and `routed_links` are for any thread, `step` for one."""

    def __init__(
        self,
        broker: str,
        ports: Sequence[tuple[Link, Port]],
        catalog: Catalog,
        publish: Callable[[], Shown | None],
        is_patient: Callable[[], bool] = lambda: False,
        *,
        budget: int | None = None,
        sample: Callable[[], Sequence[tuple[str, bytes]]] = tuple,
    ) -> None:
        """`publish` makes a generation of the catalog if it changed, and returns what the newest shows.

        `is_patient`: whether to wait for neighbours that have not answered yet before anything
        is advertised to others. Otherwise these are asked to send everything in the meantime.
        `budget`: so many rows are advertised to a neighbour at most. `sample`: messages with their tenants.
        """
        self._broker = broker
        self._catalog = catalog
        self._publish = publish
        self._is_patient = is_patient
        self._mark = uuid.uuid4().hex
        self._neighbours = {
            link.name: Neighbour(broker, link, port, Advert(self._mark, budget)) for link, port in ports
        }
        self._sample = sample
        self._received: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._waiting: list[tuple[Neighbour, Notice]] = []
        self._rows: dict[int, tuple[str, str, frozenset[Row]]] = {}
        """By number: the origin, the tenant and the rows of a subscription or route."""
        self._read: Version | None = None
        """The version of the catalog that these show."""
        self._tables: Mapping[str, TableVersion] = {}
        """The tables of routes at this version, as the newest generation has them."""
        self._established: Mapping[str, int] | None = None
        self._is_first = True
        self._pressed_by: frozenset[str] = frozenset()

    @property
    def neighbours(self) -> Mapping[str, Neighbour]:
        """All neighbours by the names of links."""
        return self._neighbours

    def receive(self, link: str, body: bytes) -> None:
        """A notice has arrived over a link; the next step reads it."""
        self._received.put((link, body))

    def routed_links(self, tables: Mapping[str, str]) -> frozenset[str]:
        """The links that are sent only what matches; `tables` are those of a generation."""
        return frozenset(
            name
            for name, neighbour in self._neighbours.items()
            if name in tables and any(tables[name] == one.hash for one in neighbour.usable)
        )

    def is_routed(self, link: str) -> bool:
        """Whether batches from now on send over a link only what matches."""
        table = self._tables.get(link)
        return table is not None and table.hash != EVERYTHING and self._neighbours[link].can_use(table)

    @property
    def pressed_by(self) -> frozenset[str]:
        """The links because of which this broker's own sources wait, as of the last step."""
        return self._pressed_by

    def step(self) -> None:
        """Do all there is to do. `CatalogError` and others: it can be repeated, and nothing is lost."""
        if self._is_first:
            self._catalog.routes.keep(self._neighbours)
            self._catalog.routes.establish({})
            self._is_first = False
        for neighbour in self._neighbours.values():
            self._greet(neighbour)
        self._read_notices()
        self._press()
        if self._show():
            for neighbour in self._neighbours.values():
                self._tell(neighbour)
            for neighbour in self._neighbours.values():
                self._acknowledge(neighbour)
            self._establish()

    # What neighbours want

    def _greet(self, neighbour: Neighbour) -> None:
        """Say hello in each new log: what an earlier one had may never arrive."""
        with suppress(LinkError):
            epoch = neighbour.port.epoch
            if neighbour.epoch != epoch and self._hello(neighbour, ask=True):
                neighbour.epoch = epoch

    def _hello(self, neighbour: Neighbour, *, ask: bool) -> bool:
        neighbour.nonce = uuid.uuid4().hex
        # What it received is forgotten.
        neighbour.is_pressed = False
        have = self._catalog.routes.tables().get(neighbour.name)
        return _sent(neighbour, Hello(neighbour.nonce, have, ask))

    def _read_notices(self) -> None:
        while not self._received.empty():
            name, body = self._received.get()
            neighbour = self._neighbours[name]
            try:
                self._waiting.append((neighbour, decode(body, f"a notice over {name}")))
            except LinkError as error:
                self._refuse(neighbour, error)
        while self._waiting:
            # What fails, as with a catalog that is away, is repeated.
            neighbour, notice = self._waiting[0]
            match notice:
                case Hello():
                    self._answer(neighbour, notice)
                case TableChange():
                    self._apply(neighbour, notice)
                case InForce(mark, counts):
                    if mark == self._mark:
                        neighbour.counts.update(counts)
                case Pressure(is_full):
                    neighbour.presses = is_full
            del self._waiting[0]

    def _answer(self, neighbour: Neighbour, hello: Hello) -> None:
        """It has said what it has. What it needs follows at the end of this step."""
        neighbour.their_nonce, neighbour.have = hello.nonce, hello.have
        neighbour.advertised = neighbour.reported = None
        neighbour.presses = False
        if hello.ask:
            self._hello(neighbour, ask=False)

    def _apply(self, neighbour: Neighbour, change: TableChange) -> None:
        if change.nonce != neighbour.nonce:
            return
        routes, name, version = self._catalog.routes, neighbour.name, change.version
        try:
            for _, text in change.added:
                rows_of(text)
        except QueryError as error:
            reason = f"a row over {name} is no query that is known ({error}): use a newer tamis"
            self._refuse(neighbour, LinkError("newer-format", reason))
            return
        applied = (
            routes.replace(name, version, change.added)
            if change.since is None
            else routes.change(name, change.since, version, change.added, change.removed)
        )
        if applied:
            neighbour.usable = (*neighbour.usable, version)
            neighbour.problem = ""
        else:
            # With another nonce: what else is on the way starts from a table that is not here.
            self._hello(neighbour, ask=False)

    def _refuse(self, neighbour: Neighbour, error: LinkError) -> None:
        log.error("link %s: %s; the neighbour is sent everything", neighbour.name, error)
        neighbour.problem = str(error)
        neighbour.usable = ()

    def _press(self) -> None:
        """Tell each neighbour whether what it sends on through this broker has to wait."""
        full = {name for name, one in self._neighbours.items() if one.presses or one.port.is_full}
        self._pressed_by = frozenset(full)
        for neighbour in self._neighbours.values():
            is_pressed = bool(full - {neighbour.name})
            if is_pressed != neighbour.is_pressed and _sent(neighbour, Pressure(is_pressed)):
                neighbour.is_pressed = is_pressed

    # What this broker wants

    def _show(self) -> bool:
        """Read what changed, and have a generation that shows it; false if there is none yet."""
        with self._catalog.changes(self._read) as changes:
            if changes.since is None:
                self._forget()
            for number in changes.removed:
                self._remove(number)
            for row in _rows_in(changes.added):
                self._add(row)
            identity, self._read, tables = changes.catalog, changes.version, changes.tables
        shown = self._publish()
        if shown is None or shown.catalog != identity or shown.version.count < self._read.count:
            return False
        if shown.version != self._read:
            # It is newer, unless the catalog was restored from a copy meanwhile.
            with self._catalog.changes(self._read) as changes:
                if changes.since is None:
                    return False
        self._tables = tables
        for neighbour in self._neighbours.values():
            if neighbour.usable and not neighbour.can_use(tables.get(neighbour.name)):
                log.warning("link %s: the catalog has another table of routes", neighbour.name)
                neighbour.usable = ()
                self._hello(neighbour, ask=False)
        return True

    def _forget(self) -> None:
        """The catalog is a new one, or was restored from a copy: its versions begin again."""
        for number in list(self._rows):
            self._remove(number)
        for neighbour in self._neighbours.values():
            neighbour.advert.forget()

    def _add(self, row: Mapping[str, Any]) -> None:
        number, tenant = row["number"], row["tenant"]
        self._remove(number)
        origin = row["id"] if row["revision"] == ROUTE_REVISION else OWN
        try:
            rows = rows_of(row["query"], json.loads(row["prefixes"]))
        except QueryError as error:
            # No generation has it either.
            log.warning("%s of tenant %r is left out: %s", row["id"], tenant, error)
            return
        self._rows[number] = origin, tenant, rows
        self._count(origin, 1)
        for neighbour in self._others(origin, tenant):
            neighbour.advert.change(origin, tenant, added=rows)

    def _remove(self, number: int) -> None:
        if number not in self._rows:
            return
        origin, tenant, rows = self._rows.pop(number)
        self._count(origin, -1)
        for neighbour in self._others(origin, tenant):
            neighbour.advert.change(origin, tenant, removed=rows)

    def _count(self, origin: str, change: int) -> None:
        if origin in self._neighbours:
            self._neighbours[origin].routes += change

    def _others(self, origin: str, tenant: str) -> Iterator[Neighbour]:
        """The neighbours to which the wants of an origin are advertised."""
        for name, neighbour in self._neighbours.items():
            if name != origin and neighbour.link.carries(tenant):
                yield neighbour

    def _tell(self, neighbour: Neighbour) -> None:
        """Tell a neighbour what has changed, or all of it if it has something else."""
        others = [one for one in self._neighbours.values() if one is not neighbour]
        unknown = [one for one in others if not one.can_use(self._tables.get(one.name))]
        if unknown and self._is_patient():
            return
        everything = bool(unknown) or any(self._tables[one.name].hash == EVERYTHING for one in others)
        advert = neighbour.advert
        in_vain = neighbour.port.in_vain
        is_too_wide = advert.is_general and in_vain >= neighbour.in_vain + REVISE_AFTER
        advert.generalise(self._sample, anew=is_too_wide)
        if is_too_wide or not advert.is_general:
            neighbour.in_vain = in_vain
        includes = {one.name: _token(self._tables[one.name]) for one in others if one not in unknown}
        assert self._read is not None
        includes[OWN] = (self._read.count, self._read.mark)
        added, removed = advert.commit(includes, everything=everything)
        nonce, version = neighbour.their_nonce, advert.version
        if nonce is None or neighbour.advertised == version:
            return
        if neighbour.advertised is None:
            have = neighbour.have
            if have is not None and have.hash == version.hash != EVERYTHING:
                change = TableChange(nonce, have, version, frozenset(), frozenset())
            else:
                change = _whole(nonce, advert)
        elif EVERYTHING in (neighbour.advertised.hash, version.hash):
            change = _whole(nonce, advert)
        else:
            change = TableChange(nonce, neighbour.advertised, version, added, removed)
        neighbour.have = None
        neighbour.advertised = version if _sent(neighbour, change) else None

    # Acknowledgements

    def _acknowledge(self, neighbour: Neighbour) -> None:
        """Report since when messages are routed by a neighbour's table, here and at the brokers beyond."""
        table = self._tables.get(neighbour.name)
        if table is None or not neighbour.can_use(table):
            return
        counts = {self._broker: table.count}
        for broker, token in self._in_force_for(neighbour.name, table.mark):
            counts[broker] = token
        report = InForce(table.mark, counts)
        if report != neighbour.reported:
            # From now on, no batch uses an earlier table.
            neighbour.usable = neighbour.usable[neighbour.usable.index(table) :]
            neighbour.reported = report if _sent(neighbour, report) else None

    def _in_force_for(self, origin: str, mark: str) -> Iterator[tuple[str, int]]:
        """By broker behind other links: the count of an origin that is in force there."""
        for neighbour in self._neighbours.values():
            if neighbour.name != origin:
                for broker, count in neighbour.counts.items():
                    included = neighbour.advert.included(count).get(origin)
                    if included is not None and included[1] == mark:
                        yield broker, included[0]

    def _establish(self) -> None:
        """Record up to which version of the catalog subscriptions are established, by broker."""
        assert self._read is not None
        versions = {self._broker: self._read.count}
        for neighbour in self._neighbours.values():
            for broker, count in neighbour.counts.items():
                included = neighbour.advert.included(count).get(OWN)
                if included is not None:
                    versions[broker] = included[0]
        if versions != self._established:
            self._catalog.routes.establish(versions)
            self._established = versions


def _sent(neighbour: Neighbour, notice: Notice) -> bool:
    """Send a notice; if its link fails, both say hello again once it works."""
    try:
        neighbour.port.send(encode(notice))
    except LinkError as error:
        log.warning("link %s: %s", neighbour.name, error)
        neighbour.epoch = ""
        return False
    return True


def _rows_in(batches: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _token(table: TableVersion) -> Token:
    return table.count, table.mark


def _whole(nonce: str, advert: Advert) -> TableChange:
    """All that is wanted."""
    is_everything = advert.version.hash == EVERYTHING
    rows = frozenset() if is_everything else advert.rows()
    return TableChange(nonce, None, advert.version, rows, frozenset())
