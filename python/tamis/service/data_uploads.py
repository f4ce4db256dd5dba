"""Updates of local data: the records are read from a file, in a child process.

A build takes the processor for long, and a record can be hostile. So the service only stores what arrives in
a file, and runs `tamis data` on it, one at a time; requests go on meanwhile.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tamis.catalog import Catalog
from tamis.errors import CatalogError, DataError
from tamis.generations.store import Store
from tamis.model.data_set import DataSet, DataVersion
from tamis.service.errors import ServiceError
from tamis.settings import Settings
from tamis.stored_data import StoredData, open_data

UPLOADS = 4
"""Uploads that may arrive or wait for the build at the same time."""

OPENED = 32
"""Versions that stay open for trying queries."""

_ERROR = re.compile(r"^tamis: ([a-z0-9-]+): (.*)$", re.MULTILINE)


class DataUploads:
    """Runs updates of local data, and opens versions for trying queries."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog
        self._store = Store(settings.generations)
        self._folder = settings.state / "uploads"
        self._building = asyncio.Lock()
        self._uploads = 0
        self._opened: dict[str, StoredData] = {}

    def remove_leftovers(self) -> None:
        """Remove the uploads of an earlier service that was killed."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @asynccontextmanager
    async def upload(self, chunks: AsyncIterator[bytes], name: str) -> AsyncIterator[Path | None]:
        """A file with what arrives, under this name; None if nothing does."""
        if self._uploads >= UPLOADS:
            reason = f"{UPLOADS} uploads are in progress; try again later"
            raise ServiceError("busy", reason, value=self._uploads, limit=UPLOADS)
        self._uploads += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            path, size = folder / name, 0
            with path.open("wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    await asyncio.to_thread(file.write, chunk)
            yield path if size else None
        finally:
            self._uploads -= 1
            shutil.rmtree(folder, ignore_errors=True)

    async def run(self, *arguments: str, folder: Path | None = None) -> None:
        """Run `tamis data`; its error is raised as `DataError`, without the path of `folder`."""
        async with self._building:
            # Not as arguments: every user of the machine can read command lines.
            environment = os.environ | {
                "TAMIS_CATALOG": self._settings.catalog,
                "TAMIS_STORE": self._settings.generations,
                "TAMIS_STATE": str(self._settings.state),
            }
            environment.pop("TAMIS_URL", None)
            process = await asyncio.create_subprocess_exec(
                *_command(arguments),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                _, stderr = await process.communicate()
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            said = stderr.decode(errors="replace")
            found = _ERROR.search(said)
            if found is None:
                raise ServiceError("failed-update", f"the update ended with {process.returncode}")
            raise DataError(found[1], found[2] if folder is None else found[2].replace(f"{folder}/", ""))

    def preview(self, data_set: DataSet, start: int, count: int) -> Sequence[str]:
        """Some records of the current version."""
        if data_set.current is None:
            return []
        stored = self._open(data_set.current)
        return [record.decode(errors="replace") for record in stored.records(start, count)]

    def attached(self, tenant: str, names: frozenset[str]) -> dict[tuple[str, str], StoredData]:
        """The current versions of data that a query of a tenant names, to try it with."""
        found = {}
        for name in names:
            try:
                current = self._catalog.data.get(name, tenant=tenant).current
            except CatalogError:
                # The query is refused: unknown data.
                continue
            if current is not None:
                found[tenant, name] = self._open(current)
        return found

    def _open(self, version: DataVersion) -> StoredData:
        stored = self._opened.pop(version.manifest, None)
        if stored is None:
            directory = self._store.directory
            if directory is None:
                folder = self._settings.cache or str(self._settings.state / "cache")
                directory = self._store.cache_in(folder)
                self._store.fetch_data(version.files, directory)
            stored = open_data(directory, version.manifest)
        self._opened[version.manifest] = stored
        while len(self._opened) > OPENED:
            del self._opened[next(iter(self._opened))]
        return stored


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "tamis.cli", "data", *arguments]
