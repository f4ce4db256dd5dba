"""Divides rows into shards by their places, on disk: memory holds one shard at a time.

Rows are written to one of 256 files by the leading digits of their places (a bucket sort). Then the files
are read in order of the places, and cut where a shard is full. The classes of places (the first two bits: a
value, a path, nothing) do not share a shard: a path would lead needless messages to the values beside it.

    rows with the places 3f…, 07…, 3e…, 9a…; two for each shard
    files 07: [07…]   3e: [3e…]   3f: [3f…]   9a: [9a…]
    shards [07…, 3e…] from 00, [3f…, 9a…] from 3f
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.model.sharding import Placement
from tamis.shard_files import places

BUCKETS = 256

FIRST = "0" * 32
"""The first place."""

HIGH, LOW = "place_high", "place_low"


@dataclass(frozen=True, slots=True)
class ShardRows:
    """The rows of one shard, from its first place."""

    first: str
    rows: pa.Table


def with_places(batch: pa.RecordBatch, placement: Placement) -> pa.RecordBatch:
    """The rows with the columns of their places."""
    prefixes: Any = batch.column("prefixes").dictionary_encode()
    columns = {
        "target": batch.column("number"),
        "query": batch.column("query"),
        "tenant": batch.column("tenant"),
        "prefixes": prefixes.indices.cast(pa.uint32()),
    }
    namespaces = [json.loads(str(text)) for text in prefixes.dictionary.to_pylist()]
    placed = places(pa.record_batch(columns), namespaces, placement)
    return batch.append_column(HIGH, placed.column("high")).append_column(LOW, placed.column("low"))


def place_text(high: int, low: int) -> str:
    """A place as it is stored."""
    return f"{high:016x}{low:016x}"


class Spill:
    """Rows by place, in files of a folder that is deleted at the end."""

    def __init__(self, folder: Path) -> None:
        """An empty one; the folder is emptied."""
        self._folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._writers: dict[int, Any] = {}
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows that have places."""
        self.rows += batch.num_rows
        buckets = _high(batch) >> np.uint64(64 - 8)
        order = np.argsort(buckets, kind="stable")
        ends = np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
        moved = batch.take(order)
        for bucket in np.unique(buckets):
            at = int(bucket)
            if at not in self._writers:
                self._writers[at] = pa.ipc.new_stream(str(self._file(at)), batch.schema)
            self._writers[at].write_batch(moved.slice(ends[at], ends[at + 1] - ends[at]))

    def shards(self, most_rows: int) -> Iterator[ShardRows]:
        """The rows in order of their places, cut into shards of at most so many rows.

        Rows with equal places are not parted: they are of one query.
        """
        self._close()
        first = FIRST
        gathered: list[pa.Table] = []
        count, last_class = 0, 0
        for bucket in sorted(self._writers):
            with pa.memory_map(str(self._file(bucket))) as source:
                rows = sorted_by_place(pa.ipc.open_stream(source).read_all())
            for start, end in _cuts(rows, most_rows):
                piece = rows.slice(start, end - start)
                if count and (count + len(piece) > most_rows or bucket >> 6 != last_class):
                    yield ShardRows(first, pa.concat_tables(gathered))
                    first, gathered, count = place_at(piece, 0), [], 0
                gathered.append(piece)
                count, last_class = count + len(piece), bucket >> 6
        if count:
            yield ShardRows(first, pa.concat_tables(gathered))

    def _file(self, bucket: int) -> Path:
        return self._folder / f"{bucket:02x}.arrows"

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def cut(rows: pa.Table, first: str, most_rows: int) -> Iterator[ShardRows]:
    """The rows of one shard as shards of at most so many rows."""
    rows = sorted_by_place(rows)
    for start, end in _cuts(rows, most_rows):
        yield ShardRows(first if start == 0 else place_at(rows, start), rows.slice(start, end - start))


def sorted_by_place(rows: pa.Table) -> pa.Table:
    """The rows in order of their places, and of their numbers where these are equal."""
    return rows.sort_by([(HIGH, "ascending"), (LOW, "ascending"), ("number", "ascending")])


def place_at(rows: pa.Table, at: int) -> str:
    """The place of a row."""
    return place_text(rows.column(HIGH)[at].as_py(), rows.column(LOW)[at].as_py())


def _cuts(rows: pa.Table, most_rows: int) -> Iterable[tuple[int, int]]:
    """Ranges of at most so many rows, or of all rows with one place."""
    high, low = (rows.column(name).to_numpy() for name in (HIGH, LOW))
    is_new = np.ones(len(rows) + 1, bool)
    is_new[1:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    starts = np.flatnonzero(is_new)
    start = 0
    while start < len(rows):
        end = int(starts[max(0, int(np.searchsorted(starts, start + most_rows, side="right")) - 1)])
        if end <= start:
            end = int(starts[np.searchsorted(starts, start, side="right")])
        yield start, end
        start = end


def _high(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    numbers: npt.NDArray[np.uint64] = batch.column(HIGH).to_numpy()
    return numbers
