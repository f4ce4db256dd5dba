"""Subscriptions by number: memory-mapped tables that turn the matching targets of a batch into subscriptions.

The tables form a small log-structured merge tree: a change appends a table, and tables of similar size are
merged. Removed numbers are in one more file (tombstones) until their tables are merged.

    before       tables [0 … 9999], [10000, 10001]      removed [17]
    change       adds 10002, removes 10001
    after        tables [0 … 9999], [10000, 10002]      removed [17]

A file is named by the hash of its content, which is verified when a process first maps the file.
"""

import os
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import StoreError
from tamis.generations.manifest import File, Manifest
from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import draft_path, publish_draft

Numbers = npt.NDArray[np.uint64]

COLUMNS = ["number", "id", "revision", "tenant", "subscriber", "delivery_target"]

RATIO = 4
"""A file has at least this many times the rows of the next smaller one, so that there are few files."""

SMALL = 1_000
"""Smaller files count as if they had this many rows, so that tiny files are merged."""


class OpenFile:
    """A file that is mapped. If it was cut short since, reading behind its end would kill the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with STORE_ERRORS.at(path):
            self._handle = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._handle)
        self._size = os.fstat(self._handle).st_size

    def check_size(self) -> None:
        """Refuse the file if it was cut short since it was opened."""
        if os.fstat(self._handle).st_size != self._size:
            raise StoreError("store-damaged", f"{self._path} was cut short")


class Subscriptions:
    """The subscriptions of a generation."""

    def __init__(self, batches: Sequence[pa.RecordBatch], files: Sequence[OpenFile] = ()) -> None:
        self._batches = [(_numbers(batch), batch) for batch in batches]
        self._files = files

    @classmethod
    def open(cls, directory: str | os.PathLike[str], number: int) -> "Subscriptions":
        """Open the subscriptions of a generation. Files are mapped, so processes share one copy."""
        return cls.of_files(Path(directory), Manifest.read(Path(directory), number).subscriptions)

    @classmethod
    def of_files(cls, directory: Path, names: Sequence[str]) -> "Subscriptions":
        """The subscriptions in some files of a directory."""
        paths = [directory / name for name in names]
        return cls([open_batch(path) for path in paths], [OpenFile(path) for path in paths])

    @property
    def bytes(self) -> int:
        """Bytes of the mapped files; all processes of a host share them."""
        return sum(batch.nbytes for _, batch in self._batches)

    def look_up(self, numbers: "pa.Array[Any]") -> pa.RecordBatch:
        """A row for each number, in order: number, id, revision, tenant, subscriber, delivery_target."""
        for file in self._files:
            file.check_size()
        wanted: Numbers = numbers.cast(pa.uint64()).to_numpy(zero_copy_only=False)
        missing = np.ones(len(wanted), bool)
        parts: list[pa.RecordBatch] = []
        places: list[npt.NDArray[np.intp]] = []
        for known, batch in self._batches:
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            here = np.flatnonzero((known[at] == wanted) & missing)
            if len(here):
                parts.append(batch.take(at[here]))
                places.append(here)
                missing[here] = False
        if missing.any():
            lost = int(wanted[missing][0])
            raise StoreError("unknown-number", f"number {lost} is no subscription of this generation")
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return _EMPTY
        return concatenated(parts).take(np.argsort(np.concatenate(places)))


@dataclass(frozen=True, slots=True)
class _Part:
    """A table of subscriptions sorted by number; `name` is its file, None if it is not written yet."""

    batch: pa.RecordBatch
    name: str | None = None

    @property
    def weight(self) -> int:
        return max(self.batch.num_rows, SMALL)

    def count(self, numbers: Numbers) -> int:
        """How many of the numbers are in this table."""
        return int(_mask_of_known(numbers, _numbers(self.batch)).sum())

    def without(self, numbers: Numbers) -> "_Part":
        """The table without the rows of these numbers."""
        return _Part(self.batch.filter(pa.array(~_mask_of_known(_numbers(self.batch), numbers))))

    def file(self, directory: Path) -> str:
        """The name of the table's file; writes the file if there is none yet."""
        return self.name or write_batch(directory, self.batch)


def update(
    directory: Path, before: Manifest | None, removed: Sequence[int], added: Iterable[pa.RecordBatch]
) -> tuple[tuple[str, ...], str | None]:
    """Write the tables of the next generation: append the added rows, merge small and stale tables.

    Returns the names of the tables, the largest first, and of the file with the removed numbers that are
    still in them.
    """
    parts = [_Part(_sorted(batch.select(COLUMNS))) for batch in added]
    fresh = np.concatenate([_numbers(part.batch) for part in parts] or [_NONE])
    tombstones = np.array(removed, np.uint64)
    if before is not None:
        parts += [_Part(open_batch(directory / name), name) for name in before.subscriptions]
        if before.removed is not None:
            tombstones = np.union1d(tombstones, _numbers(open_batch(directory / before.removed)))
    # A subscription that is resumed has its old number, which is no longer removed.
    tombstones = np.setdiff1d(tombstones, fresh)
    parts = [part.without(tombstones) if _stale(part, tombstones) else part for part in parts]
    parts = _merged(parts, tombstones)
    in_use = np.zeros(len(tombstones), bool)
    for part in parts:
        in_use |= _mask_of_known(tombstones, _numbers(part.batch))
    tombstones = tombstones[in_use]
    names = tuple(part.file(directory) for part in parts)
    if not len(tombstones):
        return names, None
    return names, write_batch(directory, pa.record_batch({"number": pa.array(tombstones)}))


def _stale(part: _Part, tombstones: Numbers) -> bool:
    """Whether more than half of the rows are removed."""
    return part.count(tombstones) * 2 > part.batch.num_rows


def _merged(parts: list[_Part], tombstones: Numbers) -> list[_Part]:
    """The parts, the largest first; neighbours of similar size are merged, so that there are few."""
    parts = sorted((part for part in parts if part.batch.num_rows), key=lambda part: -part.weight)
    at = len(parts) - 1
    while at > 0:
        if parts[at - 1].weight < RATIO * parts[at].weight:
            one = _Part(_sorted(concatenated([parts[at - 1].batch, parts[at].batch]))).without(tombstones)
            rest = parts[: at - 1] + parts[at + 1 :]
            parts = sorted([*rest, *([one] if one.batch.num_rows else [])], key=lambda part: -part.weight)
            at = len(parts)
        at -= 1
    return parts


def open_batch(path: Path) -> pa.RecordBatch:
    """The rows of a file, which is verified and mapped."""
    try:
        now = path.stat()
        if _hash_of(path, (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)) != path.stem:
            raise StoreError("store-damaged", f"{path} is not what was written: it is damaged or cut short")
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            return reader.get_batch(0)
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError("store-damaged", f"{path} cannot be mapped: {error}") from error


@lru_cache(maxsize=1024)
def _hash_of(path: Path, identity: tuple[int, ...]) -> str:
    """The hash of a file, read once per process as long as its identity (inode, size, time) is the same."""
    return File.of(path).hash


def write_batch(directory: Path, batch: pa.RecordBatch) -> str:
    """Write rows to a file; returns its name, the hash of its content."""
    directory.mkdir(parents=True, exist_ok=True)
    draft = draft_path(directory)
    try:
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        name = f"{File.of(draft).hash}.arrow"
        publish_draft(draft, directory / name)
    finally:
        draft.unlink(missing_ok=True)
    return name


def _sorted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in order of their numbers, without duplicates."""
    numbers = _numbers(batch)
    if len(numbers) < 2 or (numbers[:-1] < numbers[1:]).all():
        return batch
    return batch.take(np.unique(numbers, return_index=True)[1])


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of several batches as one batch."""
    [whole] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _numbers(batch: pa.RecordBatch) -> Numbers:
    numbers: Numbers = batch.column("number").to_numpy(zero_copy_only=False)
    return numbers


def _mask_of_known(numbers: Numbers, known: Numbers) -> npt.NDArray[np.bool_]:
    """A mask of the numbers that are among `known`, which is sorted."""
    if not len(known):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[at] == numbers
    return found


_TYPES: dict[str, Any] = {"number": pa.uint64(), "revision": pa.uint64()}
_NONE = np.array([], np.uint64)
# Not `pa.array([])`: it would import pandas, here in every process.
_EMPTY = pa.record_batch({name: pa.nulls(0, _TYPES.get(name, pa.large_string())) for name in COLUMNS})
