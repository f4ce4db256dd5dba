"""Files of a sink: in a directory of this host, or wherever a URL names. Names appear whole or not at all."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
from pyarrow import fs

from tamis.errors import SinkError
from tamis.files import DRAFT, new_draft

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def sink_told(place: object) -> Iterator[None]:
    """A file system's errors as a sink's: each says what to do."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _FULL:
            raise SinkError("sink-full", f"{place}: {why}; make room, nothing is lost") from error
        if error.errno in _FORBIDDEN:
            reason = f"{place}: {why}; let the user that the job runs as write there"
            raise SinkError("sink-forbidden", reason) from error
        raise SinkError(
            "sink-unreachable", f"{place}: {why}; is it there, and the same on all hosts?"
        ) from error


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder in a folder."""

    name: str
    changed: float
    """When, in seconds since 1970."""


class Files(Protocol):
    """What sinks do with files. Paths are from the root, with `/`."""

    url: str

    def create(self, path: str) -> IO[bytes]:
        """A new file to write to, in folders that are made where they are missing."""

    def settle(self, drafts: Mapping[str, str]) -> None:
        """Give finished drafts their names: all of them are safe then, whatever happens to the machine."""

    def place(self, path: str, content: bytes) -> bool:
        """Make a small file, safely, unless there is one of its name; whether it was made."""

    def open(self, path: str) -> Any:
        """A file to read from."""

    def size(self, path: str) -> int | None:
        """How many bytes a file has; None if there is none."""

    def list(self, folder: str) -> list[Entry]:
        """What a folder has; nothing if there is none."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all it has, if it is there."""


def draft_in(folder: str) -> str:
    """A path in a folder that nobody else writes to."""
    return f"{folder}/{DRAFT}{uuid.uuid4().hex}"


def files_at(url: str | os.PathLike[str]) -> Files:
    """The files of a directory, or of a URL that `pyarrow.fs` knows: file, hdfs, s3, gs, abfs …"""
    text = os.fspath(url)
    if "://" not in text:
        return LocalFiles(Path(text).absolute())
    try:
        system, root = fs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, OSError) as error:
        raise SinkError("sink-url", f"{text}: {error}") from error
    return (
        LocalFiles(Path(root)) if isinstance(system, fs.LocalFileSystem) else RemoteFiles(text, system, root)
    )


class LocalFiles:
    """A directory, which all hosts see under the same path where there are several."""

    def __init__(self, root: Path) -> None:
        self.url = str(root)
        self.root = root

    def create(self, path: str) -> IO[bytes]:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.open("xb")

    def settle(self, drafts: Mapping[str, str]) -> None:
        # All files first, then all names: the system then writes many of them at a time.
        for draft in drafts:
            with (self.root / draft).open("rb") as file:
                os.fsync(file.fileno())
        for draft, path in drafts.items():
            (self.root / draft).rename(self.root / path)
        self._sync({(self.root / path).parent for path in drafts.values()})

    def place(self, path: str, content: bytes) -> bool:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = new_draft(place.parent)
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return _given(draft, place)
        finally:
            draft.unlink(missing_ok=True)
            self._sync({place.parent})

    def _sync(self, folders: set[Path]) -> None:
        """Make the names in folders safe, and those of the folders themselves up to the root."""
        above = {up for folder in folders for up in folder.parents if up.is_relative_to(self.root)}
        for folder in folders | above | {self.root.parent}:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def open(self, path: str) -> Any:
        return (self.root / path).open("rb")

    def size(self, path: str) -> int | None:
        try:
            return (self.root / path).stat().st_size
        except FileNotFoundError:
            return None

    def list(self, folder: str) -> list[Entry]:
        entries = []
        with suppress(FileNotFoundError), os.scandir(self.root / folder) as found:
            for one in found:
                with suppress(FileNotFoundError):
                    entries.append(Entry(one.name, one.stat().st_mtime))
        return entries

    def remove(self, path: str) -> None:
        place = self.root / path
        with suppress(FileNotFoundError):
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()


def _given(draft: Path, place: Path) -> bool:
    """Give a draft its name, unless that is taken; whether it got it."""
    try:
        # Unlike a rename, a link leaves alone what is there.
        place.hardlink_to(draft)
    except FileExistsError:
        return False
    except OSError:
        # Not every file system has links.
        if place.exists():
            return False
        draft.rename(place)
    return True


class RemoteFiles:
    """Another file system. It keeps what it has taken; one process at a time publishes to it."""

    def __init__(self, url: str, system: fs.FileSystem, root: str) -> None:
        self.url = url
        self._system = system
        self._root = root.rstrip("/")

    def create(self, path: str) -> IO[bytes]:
        place = f"{self._root}/{path}"
        self._system.create_dir(place.rpartition("/")[0], recursive=True)
        stream: Any = self._system.open_output_stream(place, compression=None)
        return stream  # type: ignore[no-any-return]  # it has a file's write and close

    def settle(self, drafts: Mapping[str, str]) -> None:
        for draft, path in drafts.items():
            # Of another attempt of the same task. Not every file system renames over what is there.
            self.remove(path)
            self._system.move(f"{self._root}/{draft}", f"{self._root}/{path}")

    def place(self, path: str, content: bytes) -> bool:
        if self.size(path) is not None:
            return False
        draft = draft_in(path.rpartition("/")[0])
        with self.create(draft) as file:
            file.write(content)
        self._system.move(f"{self._root}/{draft}", f"{self._root}/{path}")
        return True

    def open(self, path: str) -> Any:
        return self._system.open_input_file(f"{self._root}/{path}")

    def size(self, path: str) -> int | None:
        info = self._system.get_file_info(f"{self._root}/{path}")
        return info.size if info.type == fs.FileType.File else None

    def list(self, folder: str) -> list[Entry]:
        found = self._system.get_file_info(fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return [Entry(info.base_name, (info.mtime_ns or 0) / 1e9) for info in found]

    def remove(self, path: str) -> None:
        place = f"{self._root}/{path}"
        kind = self._system.get_file_info(place).type
        with suppress(FileNotFoundError):
            if kind == fs.FileType.Directory:
                self._system.delete_dir(place)
            elif kind == fs.FileType.File:
                self._system.delete_file(place)
