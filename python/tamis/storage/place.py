"""Where published files are: a directory of this host, or whatever file system a URL names."""

import errno
import hashlib
import io
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tamis.errors import SinkError
from tamis.storage.files import DRAFT, Lock, drafted, new_draft

LOCK = ".lock"

_CAUSES = (
    ((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "sink-full", "make room; nothing of the batch counts"),
    ((errno.EACCES, errno.EPERM, errno.EROFS), "sink-denied", "give the job the right to write there"),
)


@contextmanager
def told(place: object) -> Iterator[None]:
    """A file system's errors as ours, with what to do."""
    try:
        yield
    except OSError as error:
        for numbers, code, remedy in _CAUSES:
            if error.errno in numbers:
                raise SinkError(code, f"{place}: {error}; {remedy}") from error
        remedy = "is it there, and can this host reach it?"
        raise SinkError("sink-unreachable", f"{place}: {error}; {remedy}") from error


class Draft(io.RawIOBase):
    """A file that is being written, with its size and a hash of what it holds."""

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
    """Files below a root, by their paths from there. This one is on any file system."""

    def __init__(self, url: str, files: fs.FileSystem, root: str) -> None:
        self.url = url
        self._files = files
        self._root = root

    @contextmanager
    def drafted(self, folder: str, name: Callable[[Draft], str]) -> Iterator[Draft]:
        """A file to write; it then stands in a folder, whole, under the name that is asked for."""
        path = f"{self._root}/{folder}/{DRAFT}{uuid.uuid4().hex}"
        with told(self.url):
            self._files.create_dir(f"{self._root}/{folder}", recursive=True)
            try:
                with self._files.open_output_stream(path, compression=None) as file:
                    draft = Draft(file)
                    yield draft
                final = f"{self._root}/{folder}/{name(draft)}"
                # Not every file system renames over what is there.
                with suppress(FileNotFoundError):
                    self._files.delete_file(final)
                self._files.move(path, final)
            except BaseException:
                with suppress(OSError):
                    self._files.delete_file(path)
                raise

    def put(self, folder: str, name: str, content: bytes) -> None:
        """Make a small file; it is whole and safe from the moment on that it can be seen."""
        with self.drafted(folder, lambda _: name) as draft:
            draft.write(content)

    def sync(self, paths: Iterable[str]) -> None:
        """Make files safe, whatever happens to the machine; far away they are when they are closed."""

    @contextmanager
    def locked(self, folder: str = "") -> Iterator[None]:
        """Keep other processes out; far away there is no lock, and one process at a time may publish."""
        yield

    @contextmanager
    def opened(self, path: str) -> Iterator[pa.NativeFile]:
        """A file to read, anywhere in it."""
        with told(self.url), self._files.open_input_file(f"{self._root}/{path}") as file:
            yield file

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None if it is not there."""
        with told(self.url):
            try:
                with self._files.open_input_stream(f"{self._root}/{path}", compression=None) as file:
                    content: bytes = file.read()
                    return content
            except FileNotFoundError:
                return None

    def files(self, folder: str) -> dict[str, tuple[int, int]]:
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
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        with told(self.url):
            found: list[fs.FileInfo] = self._files.get_file_info(selector)
            return found

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with told(self.url), suppress(FileNotFoundError):
            self._files.delete_file(f"{self._root}/{path}")

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all that is in it, if it is there."""
        with told(self.url), suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._root}/{path}")


class Directory(Place):
    """The same in a directory of this host, or one that all hosts have mounted."""

    def __init__(self, url: str, root: Path) -> None:
        super().__init__(url, fs.LocalFileSystem(), str(root))
        self._directory = root

    @contextmanager
    def drafted(self, folder: str, name: Callable[[Draft], str]) -> Iterator[Draft]:
        directory = self._directory / folder
        with told(directory):
            directory.mkdir(parents=True, exist_ok=True)
            path = new_draft(directory)
            try:
                with path.open("wb") as file:
                    draft = Draft(file)
                    yield draft
                path.rename(directory / name(draft))
            finally:
                path.unlink(missing_ok=True)

    def put(self, folder: str, name: str, content: bytes) -> None:
        directory = self._directory / folder
        with told(directory):
            directory.mkdir(parents=True, exist_ok=True)
            # Its content before its name: a power cut must not leave a name for nothing.
            with drafted(directory / name) as draft:
                draft.write_bytes(content)
        self.sync([f"{folder}/{name}"])

    def sync(self, paths: Iterable[str]) -> None:
        folders: set[Path] = set()
        with told(self.url):
            for path in paths:
                _sync(self._directory / path)
                folders.update((self._directory / path).relative_to(self._directory).parents)
            for folder in sorted(folders, reverse=True):
                _sync(self._directory / folder)
            # It may be new itself; whose parent cannot be opened was made by somebody else.
            with suppress(PermissionError):
                _sync(self._directory.parent)

    @contextmanager
    def locked(self, folder: str = "") -> Iterator[None]:
        lock = Lock(self._directory / folder / LOCK)
        with told(self.url):
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def remove(self, path: str) -> None:
        with told(self.url):
            (self._directory / path).unlink(missing_ok=True)

    def remove_folder(self, path: str) -> None:
        with told(self.url), suppress(FileNotFoundError):
            shutil.rmtree(self._directory / path)


def place_at(url: str | os.PathLike[str]) -> Place:
    """The place that a path or a URL names: file, hdfs, s3, gs, abfs …"""
    text = os.fspath(url)
    if "://" not in text:
        return Directory(text, Path(text).absolute())
    try:
        files, root = fs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, OSError) as error:
        raise SinkError("sink-url", f"{text}: {error}; name a directory or a URL of a file system") from error
    return Directory(text, Path(root)) if isinstance(files, fs.LocalFileSystem) else Place(text, files, root)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
