"""What a broker advertises to one neighbour: its own rows and those of its others, aggregated.

    origins → interest tables by tenant → rows that are not covered → versions

Each version remembers which version of each origin it includes, so that an acknowledgement of the advert can
be passed on to the origins. Cost: of a change, that of `InterestTable.change`.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from tamis.network.interest import Interest, Row, text_of
from tamis.network.tables import EMPTY, EVERYTHING, TableVersion, TenantRow, changed_hash

Token = tuple[int, str]
"""A version of an origin: a count and its mark."""

REMEMBERED = 1_000
"""So many versions are remembered for acknowledgements that are still to come."""


@dataclass
class Advert:
    """The table that is advertised to one neighbour, in versions."""

    mark: str
    """Of this process."""
    version: TableVersion = field(init=False)
    """The newest one. A new broker wants everything."""
    _interest: Interest = field(default_factory=Interest)
    _hash: str = EMPTY
    _added: set[TenantRow] = field(default_factory=set)
    _removed: set[TenantRow] = field(default_factory=set)
    """What has changed since the newest version."""
    _includes: dict[int, Mapping[str, Token]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.version = TableVersion(0, self.mark, EVERYTHING)

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
        new = {(tenant, text_of(row)) for row in delta.added}
        old = {(tenant, text_of(row)) for row in delta.removed}
        self._hash = changed_hash(self._hash, new, old)
        _move(new, self._added, self._removed)
        _move(old, self._removed, self._added)

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
