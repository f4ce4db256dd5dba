"""Versions of local data in files: written, changed, opened."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tamis import _kernel
from tamis.model.data import DataFiles
from tamis.model.matching import Limits
from tamis.model.message_batch import Messages, arrow_messages

_DEFAULT_LIMITS = Limits()


class StoredData:
    """A version of a data set in files: verified, and mapped, so that processes share one copy.

    Records are read when messages meet them.
    """

    def __init__(self, kernel: _kernel.Data, directory: Path, manifest: str) -> None:
        """Made by `open_data`."""
        self.kernel = kernel
        self.directory = directory
        self.manifest = manifest

    def __len__(self) -> int:
        """The number of records."""
        return self.kernel.records

    @property
    def key(self) -> str | None:
        """The path of the record key."""
        return self.kernel.key

    @property
    def indexed(self) -> list[str] | None:
        """The paths whose values are indexed; None: all."""
        return self.kernel.indexed

    def records(self, start: int = 0, count: int | None = None) -> Iterator[bytes]:
        """The records in their order: `count` of them from number `start` on, by default all."""
        wanted = len(self) - start if count is None else count
        first = self.kernel.places(None, start)
        after = first[-1] if first else None
        if start and len(first) < start:
            return
        while wanted > 0 and (places := self.kernel.places(after, min(wanted, _READ_AT_ONCE))):
            yield from self.kernel.read(places)
            after = places[-1]
            wanted -= len(places)

    def __iter__(self) -> Iterator[bytes]:
        """All records in their order."""
        return self.records()


_READ_AT_ONCE = 4096
"""Records that are copied at once."""


def build_data(
    directory: str | os.PathLike[str],
    records: Iterable[Messages],
    *,
    key: str | None = None,
    indexed: Sequence[str] | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> DataFiles:
    """Write the first version of a data set, or one that replaces all of it; `DataError` if it is refused.

    `records` come in chunks, each record a well-formed document. `key` is the path of a value that each has
    once and no two share, `/row/id` or `/company/@symbol`: records are replaced and removed by it. `indexed`
    names the paths whose values find records, by default all; the key is always indexed.
    """
    writer = _kernel.DataWriter(key, None if indexed is None else list(indexed), limits)
    for chunk in records:
        writer.add(arrow_messages(chunk))
    return _data_files(writer.finish(Path(directory).absolute()))


def change_data(
    directory: str | os.PathLike[str],
    base: str,
    *,
    upserts: Iterable[Messages] = (),
    deletes: Iterable[str] = (),
    limits: Limits = _DEFAULT_LIMITS,
) -> DataFiles:
    """Write a version with some records replaced, added and removed; `base` is the manifest of another.

    A record that has the key of another takes its place, one with a new key comes last. Keys of `deletes`
    that no record has are skipped. Costs what changes, and now and then a merge of segments.
    """
    change = _kernel.DataChange(Path(directory).absolute(), base, limits)
    for chunk in upserts:
        change.upsert(arrow_messages(chunk))
    change.remove(list(deletes))
    return _data_files(change.finish())


def open_data(directory: str | os.PathLike[str], manifest: str) -> StoredData:
    """Open a version; `DataError` if a file is damaged, or of another format (see `rebuild_data`)."""
    path = Path(directory).absolute()
    return StoredData(_kernel.Data.open(path, manifest), path, manifest)


def rebuild_data(
    directory: str | os.PathLike[str], manifest: str, *, limits: Limits = _DEFAULT_LIMITS
) -> DataFiles:
    """Write a version again, from its records: for one that another version of tamis wrote."""
    return _data_files(_kernel.rebuild_data(Path(directory).absolute(), manifest, limits))


def _data_files(files: tuple[str, list[tuple[str, int]], int, int, int]) -> DataFiles:
    manifest, named, records, segments, removed = files
    return DataFiles(manifest, tuple(named), records, segments, removed)
