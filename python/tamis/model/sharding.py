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
