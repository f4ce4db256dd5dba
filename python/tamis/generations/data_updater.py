"""Updates of a data set: records → the files of a version → the store → the catalog's current version.

Whoever updates does all the work. The job sees a new version of the catalog, and publishes a generation that
names the files; it never waits for a build. If anything fails, the current version stays.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tamis.catalog.data_sets import DataSets
from tamis.errors import DataError, TamisError
from tamis.generations.store import Store
from tamis.model.data import DataFiles
from tamis.model.data_set import DataSet, DataVersion
from tamis.model.hashed_file import File
from tamis.model.matching import Limits
from tamis.model.progress import Report
from tamis.stored_data import build_data, change_data, open_data

CHUNK = 4_096
"""Records that are handed to the kernel at once."""

CHUNK_BYTES = 8 << 20
"""Bytes of such records, unless one alone has more."""

_DEFAULT_LIMITS = Limits()


def _no_report(done: int, total: int) -> None:
    """Report nothing."""


class DataUpdater:
    """Writes new versions of the data sets of a catalog."""

    def __init__(self, data: DataSets, store: Store, folder: Path) -> None:
        """`folder` gets a temporary directory for each update; on the store's disk, files are linked."""
        self._data = data
        self._store = store
        self._folder = folder

    def replace(
        self,
        name: str,
        records: Iterable[bytes],
        *,
        tenant: str = "",
        source: str = "",
        limits: Limits = _DEFAULT_LIMITS,
        report: Report = _no_report,
    ) -> DataSet:
        """Replace all records; `DataError` if one is refused. Then the current version stays."""

        def build(directory: Path, present: DataSet) -> DataFiles:
            chunks = _chunks(_counted(records, present, report))
            return build_data(directory, chunks, key=present.key, indexed=present.indexed, limits=limits)

        return self._update(name, tenant, source, build)

    def change(
        self,
        name: str,
        *,
        upserts: Iterable[bytes] = (),
        deletes: Sequence[str] = (),
        tenant: str = "",
        source: str = "",
        limits: Limits = _DEFAULT_LIMITS,
        report: Report = _no_report,
    ) -> DataSet:
        """Add records, replace those with the same keys, and remove those with given keys."""

        def build(directory: Path, present: DataSet) -> DataFiles:
            current = present.current
            if current is None or present.key is None:
                reason = f"{name} has no record key; add it with one, or replace the whole"
                if present.key is not None:
                    reason = f"{name} has no records yet; replace the whole"
                raise DataError("no-key", reason)
            self._store.fetch_data(current.files, directory)
            chunks = _chunks(_counted(upserts, present, report))
            return change_data(directory, current.manifest, upserts=chunks, deletes=deletes, limits=limits)

        return self._update(name, tenant, source, build)

    def _update(
        self, name: str, tenant: str, source: str, build: Callable[[Path, DataSet], DataFiles]
    ) -> DataSet:
        present = self._data.get(name, tenant=tenant)
        before = present.current
        with self._directory() as directory:
            built = build(directory, present)
            if before is not None and built.manifest == before.manifest:
                # Files are named by their content: nothing has changed.
                return present
            known = {} if before is None else before.files
            names = [file for file, _ in built.files]
            files = {file: known.get(file) or File.of(directory / file) for file in names}
            version = self._data.begin(
                name,
                tenant=tenant,
                manifest=built.manifest,
                files=files,
                records=built.records,
                source=source,
            )
            try:
                for file in names:
                    self._store.add_data(directory, {file: files[file]})
                    self._data.renew(name, version, tenant=tenant)
                base = None if before is None else before.number
                return self._data.switch(name, version, tenant=tenant, base=base)
            except TamisError:
                self._data.abandon(name, version, tenant=tenant)
                raise

    @contextmanager
    def _directory(self) -> Iterator[Path]:
        self._folder.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="data-", dir=self._folder))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _counted(records: Iterable[bytes], present: DataSet, report: Report) -> Iterator[bytes]:
    """The records, with progress; how many there will be is guessed by the current version."""
    expected = 0 if present.current is None else present.current.records
    for done, record in enumerate(records, start=1):
        if done % CHUNK == 0:
            report(done, max(done, expected))
        yield record


def _chunks(records: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The records in lists of bounded size."""
    while chunk := list(islice(_until_full(records), CHUNK)):
        yield chunk


def _until_full(records: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for record in records:
        yield record
        size += len(record)
        if size >= CHUNK_BYTES:
            return


def preview(store: Store, version: DataVersion, count: int) -> Sequence[str]:
    """The first records of a version."""
    with tempfile.TemporaryDirectory() as folder:
        directory = store.directory
        if directory is None:
            directory = Path(folder)
            store.fetch_data(version.files, directory)
        stored = open_data(directory, version.manifest)
        return [record.decode(errors="replace") for record in stored.records(0, count)]
