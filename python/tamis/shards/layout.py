"""The shards of a generation as its manifest lists them."""

from dataclasses import dataclass
from typing import Any

from tamis.model.sharding import EMPTY, Sharding, ShardName


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard: the subscriptions from `first` to before the first of the next shard."""

    first: str
    """A place, 32 hexadecimal digits; empty for the last shard, which takes the changes."""
    name: str = EMPTY[0]
    queries: int = 0
    rows: int = 0
    """Its subscriptions when it was built."""
    files: tuple[str, ...] = ()
    """All its files."""
    subscriptions: tuple[str, ...] = ()
    """Those with its subscriptions by number."""

    @property
    def written(self) -> ShardName:
        """As the kernel's list names it."""
        return self.name, self.queries


@dataclass(frozen=True, slots=True)
class Layout:
    """How a generation is divided."""

    sharding: Sharding
    shards: tuple[Shard, ...]
    """In order of their places; the last one takes the changes."""
    removed: tuple[int, ...] = ()
    """Numbers that were removed since their shards were built."""
    routing: tuple[str, str] | None = None
    """The names of the routing index."""
    damaged: tuple[str, ...] = ()
    """Shards whose summary was damaged when the routing index was built: all messages visit them."""

    @property
    def built(self) -> tuple[Shard, ...]:
        """All shards but the one that takes the changes."""
        return self.shards[:-1]

    @property
    def latest(self) -> Shard:
        """The shard that takes the changes."""
        return self.shards[-1]

    def shard_of(self, place: str) -> int:
        """The number of the shard that a place belongs to."""
        firsts = [shard.first for shard in self.built]
        return max(0, sum(first <= place for first in firsts) - 1)

    @staticmethod
    def parse(value: dict[str, Any] | None) -> "Layout | None":
        """The layout in a manifest."""
        if value is None:
            return None
        fields = dict(value)
        shards = tuple(
            Shard(**{**one, "files": tuple(one["files"]), "subscriptions": tuple(one["subscriptions"])})
            for one in fields.pop("shards")
        )
        routing = fields.pop("routing")
        lists = {name: tuple(fields.pop(name)) for name in ("removed", "damaged")}
        sharding = Sharding(**fields.pop("sharding"))
        return Layout(sharding, shards, routing=None if routing is None else tuple(routing), **lists)
