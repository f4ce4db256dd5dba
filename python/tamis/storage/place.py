"""A place for files: a directory of this host, or any file system that a URL names (hdfs, s3, gs, abfs …).

Both have the same methods. A directory has a lock between processes, and `fsync` makes its files survive a
power cut. Elsewhere a file is durable when it is closed, and only one process at a time may write.
"""

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tamis.storage.failures import SINK_ERRORS, StorageErrors
from tamis.storage.files import DRAFT, Lock, atomic_file, draft_path, fsync

LOCK = ".lock"


class Draft(io.RawIOBase):
    """A file being written: counts the size and hashes the content."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._digest = hashlib.blake2b(digest_size=8)
        self.size = 0

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._digest.update(data)
        size = memoryview(data).nbytes
        self.size += size
        return size


class Place:
    """Files below a root, by their paths from there, on any file system."""

    directory: Path | None = None
    """The root, if it is a directory of this host."""

    def __init__(self, url: str, files: fs.FileSystem, root: str, errors: StorageErrors) -> None:
        self.url = url
        self._files = files
        self._root = root
        self._errors = errors

    @contextmanager
    def drafted(self, folder: str, name: Callable[[Draft], str]) -> Iterator[Draft]:
        """A file to write. At the end it appears in the folder, whole, under the name that `name` gives."""
        path = self._path(folder, f"{DRAFT}{os.urandom(16).hex()}")
        with self._errors.at(self.url):
            self._files.create_dir(self._path(folder), recursive=True)
            try:
                with self._files.open_output_stream(path, compression=None) as file:
                    draft = Draft(file)
                    yield draft
                final = self._path(folder, name(draft))
                # Not every file system renames over an existing file.
                with suppress(FileNotFoundError):
                    self._files.delete_file(final)
                self._files.move(path, final)
            except BaseException:
                with suppress(OSError):
                    self._files.delete_file(path)
                raise

    def put(self, folder: str, name: str, content: bytes) -> None:
        """Write a small file, atomically and durably."""
        with self.drafted(folder, lambda _: name) as draft:
            draft.write(content)

    def sync(self, paths: Iterable[str]) -> None:
        """Make files durable; on a remote file system they are, once they are closed."""

    @contextmanager
    def locked(self, folder: str = "", name: str = LOCK) -> Iterator[None]:
        """Hold a lock between processes; a remote file system has none."""
        yield

    @contextmanager
    def opened(self, path: str) -> Iterator[pa.NativeFile]:
        """A file to read, with random access."""
        with self._errors.at(self.url), self._files.open_input_file(self._path(path)) as file:
            yield file

    @contextmanager
    def streamed(self, path: str) -> Iterator[pa.NativeFile | None]:
        """A file to read from start to end; None if it does not exist."""
        with self._errors.at(self.url):
            try:
                file = self._files.open_input_stream(self._path(path), compression=None)
            except FileNotFoundError:
                yield None
                return
            with file:
                yield file

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None if it does not exist."""
        with self.streamed(path) as file:
            return None if file is None else file.read()

    def files(self, folder: str = "") -> dict[str, tuple[int, int]]:
        """The files of a folder: size, and time of the last change in nanoseconds."""
        return {
            info.base_name: (info.size or 0, info.mtime_ns or 0)
            for info in self._listed(folder)
            if info.type == fs.FileType.File
        }

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder."""
        return sorted(info.base_name for info in self._listed(folder) if info.type == fs.FileType.Directory)

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        # Arrow raises the error if the folder is created while it is listed: it was not there yet.
        with self._errors.at(self.url), suppress(FileNotFoundError):
            found: list[fs.FileInfo] = self._files.get_file_info(selector)
            return found
        return []

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with self._errors.at(self.url), suppress(FileNotFoundError):
            self._files.delete_file(self._path(path))

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it, if it exists."""
        with self._errors.at(self.url), suppress(FileNotFoundError):
            self._files.delete_dir(self._path(path))

    def _path(self, *parts: str) -> str:
        return "/".join(part for part in (self._root, *parts) if part)


class Directory(Place):
    """A directory of this host, or one that all hosts have mounted."""

    directory: Path

    def __init__(self, url: str, root: Path, errors: StorageErrors) -> None:
        super().__init__(url, fs.LocalFileSystem(), str(root), errors)
        self.directory = root

    @contextmanager
    def drafted(self, folder: str, name: Callable[[Draft], str]) -> Iterator[Draft]:
        directory = self.directory / folder
        with self._errors.at(directory):
            directory.mkdir(parents=True, exist_ok=True)
            path = draft_path(directory)
            try:
                with path.open("wb") as file:
                    draft = Draft(file)
                    yield draft
                path.rename(directory / name(draft))
            finally:
                path.unlink(missing_ok=True)

    def put(self, folder: str, name: str, content: bytes) -> None:
        path = self.directory / folder / name
        with self._errors.at(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as draft:
                draft.write_bytes(content)
        self.sync([path.relative_to(self.directory).as_posix()])

    def sync(self, paths: Iterable[str]) -> None:
        folders: set[Path] = set()
        with self._errors.at(self.url):
            for path in paths:
                fsync(self.directory / path)
                folders.update(Path(path).parents)
            for folder in sorted(folders, reverse=True):
                fsync(self.directory / folder)
            # The directory may be new. If its parent cannot be opened, another user created the directory.
            with suppress(PermissionError):
                fsync(self.directory.parent)

    @contextmanager
    def locked(self, folder: str = "", name: str = LOCK) -> Iterator[None]:
        lock = Lock(self.directory / folder / name)
        with self._errors.at(self.url):
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def remove(self, path: str) -> None:
        with self._errors.at(self.url):
            (self.directory / path).unlink(missing_ok=True)

    def remove_folder(self, path: str) -> None:
        with self._errors.at(self.url), suppress(FileNotFoundError):
            shutil.rmtree(self.directory / path)


def place_at(url: str | os.PathLike[str], errors: StorageErrors = SINK_ERRORS) -> Place:
    """The place that a path or a URL names: file, hdfs, s3, gs, abfs …"""
    text = os.fspath(url)
    if "://" not in text:
        return Directory(text, Path(text).absolute(), errors)
    try:
        files, root = fs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, OSError) as error:
        raise errors.bad_url(text, error) from error
    if isinstance(files, fs.LocalFileSystem):
        return Directory(text, Path(root), errors)
    return Place(text, files, root, errors)
