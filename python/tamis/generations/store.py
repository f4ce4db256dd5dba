"""The store: where generations are published, in a directory or a remote file system."""

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.generations.manifest import File, Manifest
from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import atomic_file
from tamis.storage.place import place_at

YOUNG = 3600.0
"""A sweep keeps younger files (in seconds) that no manifest names: their generation may be in progress."""

LOCK = ".store.lock"


class Store:
    """Generations as files, shared between hosts. Files are added and removed, never rewritten.

    A directory has a lock between processes. Another file system has none: publish to it, and sweep
    it, from one process at a time.
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        """A directory, or a URL that `pyarrow.fs` knows: file, hdfs, s3, gs, abfs …"""
        self._place = place_at(url, STORE_ERRORS)
        self.url = self._place.url
        self.directory = self._place.directory
        """Where the files are, if that is a directory of this host."""

    def newest(self) -> int | None:
        """The number of the newest generation; None if there is none."""
        return max(self._numbers(self._place.files()), default=None)

    def manifest(self, number: int) -> Manifest:
        """The manifest of a generation."""
        return self._parsed(self._read(number), number)

    def publish(self, directory: str | os.PathLike[str], number: int) -> None:
        """Publish a generation of a directory: copy missing files, then its manifest."""
        source = Store(directory)
        if source.directory == self.directory:
            source._read(number)
            return
        with self._place.locked(name=LOCK):
            text = source._read(number)
            if number in self._numbers(self._place.files()):
                if self._read(number) != text:
                    reason = f"{self.url} has another generation {number}: publish from one place only"
                    raise StoreError("generation-taken", reason)
                return
            self._copy_generation(source, number, text)

    def fetch(self, number: int, cache: str | os.PathLike[str] | None = None) -> Path:
        """Copy the missing files of a generation to a cache of this host; returns the cache.

        A store that is a directory is used in place, unless a cache is given.
        """
        if cache is None:
            if self.directory is None:
                reason = f"{self.url} cannot be mapped: name a directory of this host for a cache"
                raise StoreError("cache-needed", reason)
            self._read(number)
            return self.directory
        there = Store(cache)
        if there.directory is None:
            raise StoreError("store-url", f"{there.url}: a cache is a directory of this host")
        if there.directory != self.directory:
            with there._place.locked(name=LOCK):
                # A cache may hold the generation of this number from another store.
                text = self._read(number)
                if not there._has(number, text):
                    there._copy_generation(self, number, text)
        return there.directory

    def cache_in(self, folder: str | os.PathLike[str]) -> Path:
        """This store's cache in a folder that other stores share: each store numbers its own generations."""
        return Path(folder) / blake2b(self.url.encode(), digest_size=8).hexdigest()

    def add_data(self, directory: str | os.PathLike[str], files: Mapping[str, File]) -> None:
        """Copy the missing files of a version of local data from a directory.

        The catalog must name them already, or a sweep may remove them.
        """
        with self._place.locked(name=LOCK):
            self._copy_missing(Store(directory), files)

    def fetch_data(self, files: Mapping[str, File], directory: str | os.PathLike[str]) -> None:
        """Copy the missing files of a version of local data to a directory of this host."""
        Store(directory)._copy_missing(self, files)

    def _copy_missing(self, source: "Store", files: Mapping[str, File]) -> None:
        present = self._place.files()
        for name, file in files.items():
            if name not in present or present[name][0] != file.size:
                self._copy(source, name, file)

    def sweep(
        self,
        keep: Iterable[int],
        *,
        young: float = YOUNG,
        kept_files: Callable[[], Collection[str]] = tuple,
    ) -> list[str]:
        """Remove generations except those to keep and the newest; returns the names of the removed files.

        A process that has mapped a removed file can still read it. Files that no manifest names are removed
        too, once they are older than `young` seconds, except `kept_files`: those of local data.
        """
        with self._place.locked(name=LOCK):
            named = set(kept_files())
            found = self._place.files()
            numbers = set(self._numbers(found))
            kept = numbers & {*keep, max(numbers, default=0)}
            needed = named | {Manifest.name(number) for number in kept}
            needed.update(name for number in kept for name in self._files_of(number))
            dropped = {name for number in numbers - kept for name in self._files_of(number)}
            gone = [Manifest.name(number) for number in sorted(numbers - kept)]
            limit = (time.time() - young) * 1e9
            for name, (_, changed) in sorted(found.items()):
                spare = name not in needed and name not in gone and not name.endswith(".lock")
                if spare and (name in dropped or changed <= limit):
                    gone.append(name)
            # The manifests first: a generation with a manifest must be complete.
            for name in gone:
                self._place.remove(name)
            return gone

    def purge(self, kept_files: Collection[str] = ()) -> list[str]:
        """Remove damaged generations, and files that no intact one names; returns the removed names.

        Except `kept_files`: those of local data that no generation names.

        Reads all files. Files are named by their content, so a damaged file would be reused for the content
        that its name stands for.
        """
        with self._place.locked(name=LOCK), STORE_ERRORS.at(self.url):
            found = self._place.files()
            whole: set[str] = set()
            for number in self._numbers(found):
                files = self._files_of(number)
                if files and all(self._is_intact(name, file) for name, file in files.items()):
                    whole |= {Manifest.name(number), *files}
            whole.update(kept_files)
            gone = [name for name in found if name not in whole and not name.endswith(".lock")]
            for name in gone:
                self._place.remove(name)
            return gone

    def _files_of(self, number: int) -> Mapping[str, File]:
        """The files of a generation; none if its manifest is damaged."""
        try:
            return self.manifest(number).all_files
        except StoreError as error:
            if error.code != "store-damaged":
                raise
            return {}

    def _is_intact(self, name: str, file: File) -> bool:
        with self._place.streamed(name) as there:
            return there is not None and File.read(there) == file

    def _copy_generation(self, source: "Store", number: int, text: bytes) -> None:
        """Copy a generation of another store."""
        manifest = source._parsed(text, number)
        present = self._place.files()
        for name, file in manifest.all_files.items():
            known = present.get(name)
            # The kernel's list is not named by its content: a present one may be of an unfinished attempt.
            if known is None or known[0] != file.size or name == Manifest.kernel_name(number):
                self._copy(source, name, file)
        self._place.put("", Manifest.name(number), text)

    def _copy(self, source: "Store", name: str, file: File) -> None:
        """Copy a file of another store; between directories on one disk, by a hard link."""
        if self.directory is None:
            # Written as a draft and renamed: closing a remote stream that broke would publish half a file.
            with source._opened(name) as original, self._place.drafted("", lambda _: name) as copy:
                shutil.copyfileobj(original, copy, 1 << 20)
            return
        with STORE_ERRORS.at(self.url), atomic_file(self.directory / name) as draft:
            linked = source.directory is not None and _linked(source.directory / name, draft)
            if not linked:
                with source._opened(name) as original, draft.open("wb") as copy:
                    shutil.copyfileobj(original, copy, 1 << 20)
            # A hard link is not verified by hash: reading the file would be most of the work.
            if draft.stat().st_size != file.size or not (linked or File.of(draft) == file):
                raise StoreError(
                    "store-damaged",
                    f"{source.url}/{name} does not have the content that its generation names",
                )

    @contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        with self._place.streamed(name) as file:
            if file is None:
                reason = f"{self.url} has no {name}: there never was such a generation, or it was swept"
                raise StoreError("no-generation", reason)
            yield file

    def _parsed(self, text: bytes, number: int) -> Manifest:
        return Manifest.parse(text, f"{self.url}/{Manifest.name(number)}", number)

    def _read(self, number: int) -> bytes:
        """The text of a generation's manifest."""
        with self._opened(Manifest.name(number)) as file:
            text: bytes = file.read()
            return text

    def _has(self, number: int, text: bytes) -> bool:
        return number in self._numbers(self._place.files()) and self._read(number) == text

    def _numbers(self, names: Iterable[str]) -> list[int]:
        return [number for name in names if (number := Manifest.number_in(name)) is not None]


def _linked(source: Path, name: Path) -> bool:
    """Create a hard link; false if that is impossible, as between disks. Linked files are never modified."""
    try:
        name.hardlink_to(source)
    except OSError:
        return False
    return True
