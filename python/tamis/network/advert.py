"""What a broker advertises to one neighbour: its own rows and those of its others, aggregated.

    origins → interest tables by tenant → rows that are not covered → versions

With a budget of rows, wider rows replace the ones that are too many (`generalise.py`): they are rows of an
origin of their own, which cover them.

Each version remembers which version of each origin it includes, so that an acknowledgement of the advert can
be passed on to the origins. Cost: of a change, that of `InterestTable.change`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tamis.network.generalise import choose, wider_forms
from tamis.network.interest import Interest, Row, text_of
from tamis.network.tables import EMPTY, EVERYTHING, TableVersion, TenantRow, changed_hash

Token = tuple[int, str]
"""A version of an origin: a count and its mark."""

GENERAL = "*"
"""The origin of rows that replace others; no link has this name."""

ROOM = 0.75
"""The share of the budget that is used after rows were replaced."""

REMEMBERED = 1_000
"""So many versions are remembered for acknowledgements that are still to come."""


@dataclass
class Advert:
    """The table that is advertised to one neighbour, in versions."""

    mark: str
    """Of this process."""
    budget: int | None = None
    """So many rows are advertised at most; None: any number."""
    version: TableVersion = field(init=False)
    """The newest one. A new broker wants everything."""
    _interest: Interest = field(init=False)
    _size: int = 0
    """How many rows are advertised."""
    _general: list[tuple[str, Row]] = field(default_factory=list)
    """The rows that replace others, with their tenants."""
    _hash: str = EMPTY
    _added: set[TenantRow] = field(default_factory=set)
    _removed: set[TenantRow] = field(default_factory=set)
    """What has changed since the newest version."""
    _includes: dict[int, Mapping[str, Token]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.version = TableVersion(0, self.mark, EVERYTHING)
        self._interest = Interest() if self.budget is None else Interest(wider_forms)

    def rows(self) -> frozenset[TenantRow]:
        """All rows, without those that are covered."""
        return frozenset(
            (tenant, text_of(row)) for tenant, table in self._interest.tables() for row in table.advertised
        )

    def change(
        self, origin: Hashable, tenant: str, added: Iterable[Row] = (), removed: Iterable[Row] = ()
    ) -> None:
        """Add and remove rows of an origin, for the next version."""
        delta = self._interest.table(tenant).change(origin, added, removed)
        self._size += len(delta.added) - len(delta.removed)
        new = {(tenant, text_of(row)) for row in delta.added}
        old = {(tenant, text_of(row)) for row in delta.removed}
        self._hash = changed_hash(self._hash, new, old)
        _move(new, self._added, self._removed)
        _move(old, self._removed, self._added)

    @property
    def is_general(self) -> bool:
        """Whether it has rows that replace others."""
        return bool(self._general)

    def generalise(self, sample: Callable[[], Sequence[tuple[str, bytes]]], *, anew: bool = False) -> None:
        """Keep to the budget, by wider rows; `anew`: choose all of them again.

        `sample`: messages with their tenants. Rows that were chosen stay until all rows fit, or `anew`.
        """
        if self.budget is None:
            return
        different = sum(table.size for _, table in self._interest.tables()) - len(self._general)
        if self._general and (anew or different <= self.budget):
            for tenant, row in self._general:
                self.change(GENERAL, tenant, removed=[row])
            self._general = []
        if self._size <= self.budget:
            return
        messages = sample()
        # With room for the next rows: choosing costs more than adding them.
        while (surplus := self._size - int(self.budget * ROOM)) > 0:
            tables = dict(self._interest.tables())
            chosen = choose(
                {tenant: table.by_form for tenant, table in tables.items()},
                {tenant: table.advertised for tenant, table in tables.items()},
                # Not all at once: a chosen row has forms that none of the others has.
                (surplus + 1) // 2,
                messages,
            )
            for tenant, row in chosen:
                self.change(GENERAL, tenant, added=[row])
            self._general += chosen
            if not chosen:
                break

    def commit(
        self, includes: Mapping[str, Token], *, everything: bool
    ) -> tuple[frozenset[TenantRow], frozenset[TenantRow]]:
        """Make a new version if what is wanted has changed; the rows that were added and removed.

        `includes`: the versions of the origins that it shows.
        """
        added, removed = frozenset(self._added), frozenset(self._removed)
        self._added, self._removed = set(), set()
        hash = EVERYTHING if everything else self._hash
        if hash != self.version.hash or not self.version.count:
            self.version = TableVersion(self.version.count + 1, self.mark, hash)
        self._includes[self.version.count] = includes
        while len(self._includes) > REMEMBERED:
            del self._includes[min(self._includes)]
        return added, removed

    def included(self, count: int) -> Mapping[str, Token]:
        """The versions of the origins that a version shows, or an earlier one that is remembered."""
        known = max((one for one in self._includes if one <= count), default=None)
        return {} if known is None else self._includes[known]

    def forget(self) -> None:
        """Forget what versions include: those of the origins begin again."""
        self._includes.clear()


def _move(rows: Iterable[TenantRow], entered: set[TenantRow], left: set[TenantRow]) -> None:
    """Rows enter one set, unless they were in the other: then nothing has changed."""
    for row in rows:
        if row in left:
            left.discard(row)
        else:
            entered.add(row)
