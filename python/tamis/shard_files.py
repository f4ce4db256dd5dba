"""The files of shards, as the kernel writes them: see `src/engine/snapshot.rs`."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tamis import _kernel
from tamis.model.sharding import Placement, Routing, ShardName

KEY_BITS = 32
"""The most bits of the fingerprint of a value in a routing index."""


def places(
    table: pa.RecordBatch, namespaces: Sequence[dict[str, str]], placement: Placement
) -> pa.RecordBatch:
    """The place of each subscription among all, for `hash` or `test`: the columns `high` and `low`.

    The table is as for `Index.load`. A query that is refused has the first place.
    """
    placed: pa.RecordBatch = pa.record_batch(_kernel.place_queries(table, list(namespaces), placement))
    return placed


def write_routing(
    directory: Path, shards: Sequence[ShardName], key_bits: int = KEY_BITS
) -> tuple[Routing, list[str]]:
    """Write the index of the summaries of shards; its name, and the shards whose summary is damaged."""
    return _kernel.write_routing(directory, list(shards), key_bits)


def write_shards(
    directory: Path, number: int, shards: Sequence[ShardName], removed: Sequence[int], routing: Routing | None
) -> None:
    """Write the list of a generation's shards; the number must be free.

    The routing index is of the first shards; all messages visit those after it. The targets in `removed` are
    removed from all shards but the last, which takes the changes.
    """
    _kernel.write_shards(directory, number, list(shards), list(removed), routing)


def files_of(directory: Path, name: str) -> list[str]:
    """The files of a shard."""
    return _kernel.shard_files(directory, name)
