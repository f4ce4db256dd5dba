"""How generations are divided into shards."""

from dataclasses import dataclass
from typing import Literal

Placement = Literal["hash", "test"]

ShardName = tuple[str, int]
"""The name of a shard, and how many queries it has."""

EMPTY: ShardName = ("-", 0)
"""A shard without queries. It has no files."""

Routing = tuple[str, str]
"""The names of the two files of a routing index."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """How the subscriptions of a catalog are divided."""

    placement: Placement
    rows: int
    """Subscriptions of a shard, about."""


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """How the subscriptions are divided; without `rows` there is one shard."""

    rows: int | None = None
    """Subscriptions of a shard, about."""
    placement: Placement = "test"
    open: int = 4 << 30
    """Bytes of segments that a worker keeps scratch space and caches for."""

    @property
    def sharding(self) -> Sharding | None:
        """How to divide; None: one shard."""
        return None if self.rows is None else Sharding(self.placement, self.rows)
