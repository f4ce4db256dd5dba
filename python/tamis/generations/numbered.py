"""Subscriptions by number: whose delivery it is when a target matched. Mapped, and looked up by the batch.

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
"""A file has at least so many times the rows of the next one, so that there are never many."""

SMALL = 1_000
"""Files with fewer rows count as if they had so many."""


class OpenFile:
    """A file that is mapped elsewhere. To read what was cut off of it would end the process."""

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
        """Those of a generation in a directory. Files are mapped, so that processes share one copy."""
        manifest = Manifest.read(Path(directory), number)
        paths = [Path(directory) / name for name in manifest.subscriptions]
        return cls([open_batch(path) for path in paths], [OpenFile(path) for path in paths])

    @property
    def bytes(self) -> int:
        """Bytes of its files, which are mapped: all processes of a host share them."""
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
    """Rows sorted by number, in a file if they have a name."""

    batch: pa.RecordBatch
    name: str | None = None

    @property
    def weight(self) -> int:
        return max(self.batch.num_rows, SMALL)

    def count(self, numbers: Numbers) -> int:
        """How many of some numbers are here."""
        return int(_among(numbers, _numbers(self.batch)).sum())

    def without(self, numbers: Numbers) -> "_Part":
        """What is left when rows are taken out."""
        return _Part(self.batch.filter(pa.array(~_among(_numbers(self.batch), numbers))))

    def file(self, directory: Path) -> str:
        """The name of the file, which is written if it is not there yet."""
        return self.name or write_batch(directory, self.batch)


def update(
    directory: Path, before: Manifest | None, removed: Sequence[int], added: Iterable[pa.RecordBatch]
) -> tuple[tuple[str, ...], str | None]:
    """Write what a change adds, and merge what has become small or stale.

    The files of the subscriptions, the largest first, and that of the removed numbers among them.
    """
    parts = [_Part(_sorted(batch.select(COLUMNS))) for batch in added]
    fresh = np.concatenate([_numbers(part.batch) for part in parts] or [_NONE])
    gone = np.array(removed, np.uint64)
    if before is not None:
        parts += [_Part(open_batch(directory / name), name) for name in before.subscriptions]
        if before.removed is not None:
            gone = np.union1d(gone, _numbers(open_batch(directory / before.removed)))
    # Who was paused and is back is not gone.
    gone = np.setdiff1d(gone, fresh)
    parts = _merged([part.without(gone) if _stale(part, gone) else part for part in parts], gone)
    there = np.zeros(len(gone), bool)
    for part in parts:
        there |= _among(gone, _numbers(part.batch))
    gone = gone[there]
    names = tuple(part.file(directory) for part in parts)
    return names, write_batch(directory, pa.record_batch({"number": pa.array(gone)})) if len(gone) else None


def _stale(part: _Part, gone: Numbers) -> bool:
    """Whether most of it is gone."""
    return part.count(gone) * 2 > part.batch.num_rows


def _merged(parts: list[_Part], gone: Numbers) -> list[_Part]:
    """Few parts, the largest first: two are made one where the smaller is not much smaller."""
    parts = sorted((part for part in parts if part.batch.num_rows), key=lambda part: -part.weight)
    at = len(parts) - 1
    while at > 0:
        if parts[at - 1].weight < RATIO * parts[at].weight:
            one = _Part(_sorted(concatenated([parts[at - 1].batch, parts[at].batch]))).without(gone)
            rest = parts[: at - 1] + parts[at + 1 :]
            parts = sorted([*rest, *([one] if one.batch.num_rows else [])], key=lambda part: -part.weight)
            at = len(parts)
        at -= 1
    return parts


def open_batch(path: Path) -> pa.RecordBatch:
    """The rows of a file, verified and mapped."""
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
    """Write rows to a file; its name, which is made of its content."""
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
    """By number, each once."""
    numbers = _numbers(batch)
    if len(numbers) < 2 or (numbers[:-1] < numbers[1:]).all():
        return batch
    return batch.take(np.unique(numbers, return_index=True)[1])


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several."""
    [whole] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _numbers(batch: pa.RecordBatch) -> Numbers:
    numbers: Numbers = batch.column("number").to_numpy(zero_copy_only=False)
    return numbers


def _among(numbers: Numbers, known: Numbers) -> npt.NDArray[np.bool_]:
    """Which numbers are among known ones; these are sorted."""
    if not len(known):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[at] == numbers
    return found


_TYPES: dict[str, Any] = {"number": pa.uint64(), "revision": pa.uint64()}
_NONE = np.array([], np.uint64)
# Not `pa.array([])`: it would import pandas, here in every process.
_EMPTY = pa.record_batch({name: pa.nulls(0, _TYPES.get(name, pa.large_string())) for name in COLUMNS})
