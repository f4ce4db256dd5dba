"""What a broker wants: rows to route by. Map, collect and aggregate of ONYX (seed 001, section 7.3.2).

    map        a query → rows, each a conjunction of linear paths (`tamis.weaken`)
    collect    rows of several origins (subscriptions here, brokers behind a link) in one table, counted
    aggregate  the rows that are not covered: no weaker form of them is in the table

The table of a broker, aggregated, is what it advertises to its neighbour, for which the broker is the only
target.

    //item/price>50                      1 subscription         covered by the second
    //item/price                         2 subscriptions        advertised to the neighbour
    //item/price and //tag='sale'        1 subscription         covered by the second

A row is covered if one of its own *weaker forms* is in the table: a row with some of its lines, and with some
of their tests left out. Forms are looked up, so a change costs the number of forms of its row (at most
`MOST_FORMS`) and of the rows whose state it changes, and never a comparison with all rows.

Whether a row is covered depends only on which rows there are, so the order of changes does not matter.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

import tamis
from tamis.model.matching import Line

Row: TypeAlias = frozenset[Line]
"""A conjunction of lines; the empty one is satisfied by every message."""

MOST_FORMS = 243
"""A row of more lines is only compared with single lines and with everything."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A change of what is advertised: to be applied as a whole."""

    added: frozenset[Row] = frozenset()
    removed: frozenset[Row] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def rows_of(query: str, namespaces: Mapping[str, str] | None = None) -> frozenset[Row]:
    """The rows of a query, which matches only messages that satisfy one; `QueryError` if it is refused."""
    return frozenset(frozenset(lines) for lines in tamis.weaken(query, namespaces).alternatives)


def text_of(row: Row) -> str:
    """A row as a query."""
    return " and ".join(sorted(line.text for line in row)) or "true()"


def weaker_forms(row: Row) -> set[Row]:
    """The rows that this one implies, without itself: each line is kept, loses its test, or is dropped."""
    if 3 ** len(row) > MOST_FORMS:
        singles = {frozenset([form]) for line in row for form in (line, line.untested)}
        return {*singles, frozenset()}
    choices = [{(line,), (line.untested,), ()} for line in sorted(row)]
    forms = {frozenset(line for some in one for line in some) for one in product(*choices)}
    return forms - {row}


@dataclass
class InterestTable:
    """The rows of one tenant, by origin, and which of them are advertised."""

    forms: Callable[[Row], set[Row]] = weaker_forms
    """The forms by which a row is covered."""
    _counts: dict[Hashable, Counter[Row]] = field(default_factory=dict)
    """By origin: how often it has each row."""
    _total: Counter[Row] = field(default_factory=Counter)
    _stronger: dict[Row, set[Row]] = field(default_factory=dict)
    """By form: the rows in the table that have it as a weaker form."""
    _coverers: Counter[Row] = field(default_factory=Counter)
    """By row in the table: how many of its weaker forms are in the table."""

    @property
    def advertised(self) -> frozenset[Row]:
        """The aggregated table: the rows that are not covered."""
        return frozenset(row for row in self._total if not self._coverers[row])

    @property
    def size(self) -> int:
        """How many different rows there are."""
        return len(self._total)

    @property
    def by_form(self) -> Mapping[Row, Collection[Row]]:
        """By form: the rows that have it."""
        return self._stronger

    def rows(self, origin: Hashable) -> Counter[Row]:
        """The rows of an origin with their counts."""
        return Counter(self._counts.get(origin, ()))

    def change(self, origin: Hashable, added: Iterable[Row] = (), removed: Iterable[Row] = ()) -> Delta:
        """Add and remove rows of an origin; the change of what is advertised.

        Removing a row that covered others advertises those again in the same change. `KeyError`, and no
        change, if the origin has not the rows to remove.
        """
        changes = Counter(added)
        changes.subtract(removed)
        counts = self._counts.get(origin, Counter())
        for row, change in changes.items():
            if counts[row] + change < 0:
                raise KeyError(f"{origin} has no row {text_of(row)}")
        touched: dict[Row, bool] = {}
        for row, change in changes.items():
            self._count(origin, row, change, touched)
        return Delta(
            frozenset(row for row, before in touched.items() if not before and self._is_advertised(row)),
            frozenset(row for row, before in touched.items() if before and not self._is_advertised(row)),
        )

    def replace(self, origin: Hashable, rows: Iterable[Row]) -> Delta:
        """Give an origin other rows, each once; without any, it is forgotten."""
        wanted, known = Counter(set(rows)), self.rows(origin)
        return self.change(origin, (wanted - known).elements(), (known - wanted).elements())

    def _is_advertised(self, row: Row) -> bool:
        return row in self._total and not self._coverers[row]

    def _count(self, origin: Hashable, row: Row, change: int, touched: dict[Row, bool]) -> None:
        """Change the count of a row; `touched` gets each row whose state may change, and that state."""
        if not change:
            return
        counts = self._counts.setdefault(origin, Counter())
        was_there = row in self._total
        if not was_there or self._total[row] + change == 0:
            touched.setdefault(row, self._is_advertised(row))
            for other in self._stronger.get(row, ()):
                touched.setdefault(other, self._is_advertised(other))
        for counter in (counts, self._total):
            counter[row] += change
            if not counter[row]:
                del counter[row]
        if not counts:
            del self._counts[origin]
        is_there = row in self._total
        if is_there != was_there:
            self._enter(row) if is_there else self._leave(row)

    def _enter(self, row: Row) -> None:
        for form in self.forms(row):
            self._stronger.setdefault(form, set()).add(row)
            if form in self._total:
                self._coverers[row] += 1
        for other in self._stronger.get(row, ()):
            self._coverers[other] += 1

    def _leave(self, row: Row) -> None:
        for form in self.forms(row):
            self._stronger[form].discard(row)
            if not self._stronger[form]:
                del self._stronger[form]
        del self._coverers[row]
        for other in self._stronger.get(row, ()):
            self._coverers[other] -= 1


@dataclass
class Interest:
    """The interest of a broker by tenant: tenants never share rows."""

    forms: Callable[[Row], set[Row]] = weaker_forms
    _tables: dict[str, InterestTable] = field(default_factory=dict)

    def table(self, tenant: str) -> InterestTable:
        return self._tables.setdefault(tenant, InterestTable(self.forms))

    def tables(self) -> Iterator[tuple[str, InterestTable]]:
        """All tables by tenant."""
        yield from self._tables.items()

    def subscribe(
        self, tenant: str, subscription: str, query: str, namespaces: Mapping[str, str] | None = None
    ) -> Delta:
        """A subscription of this broker has a query, a new one or another one."""
        return self.table(tenant).replace(("subscription", subscription), rows_of(query, namespaces))

    def unsubscribe(self, tenant: str, subscription: str) -> Delta:
        return self.table(tenant).replace(("subscription", subscription), ())

    def apply(self, tenant: str, neighbour: str, delta: Delta) -> Delta:
        """What a neighbour advertises has changed; what this broker advertises changes as follows."""
        return self.table(tenant).change(("broker", neighbour), delta.added, delta.removed)
