"""The ledger of an inbox: which file has which number. Offsets speak of numbers, so it outlives them.

A file is known by name, size, time and inode: the same name with new content is a new file. One line is
appended per file that is seen, and one when it is done with; nothing is ever changed. Several processes may
write: each takes the lock, reads what others wrote, and then appends. In memory, a file that is done with
costs its name.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from tamis.errors import TamisError


class LedgerError(TamisError):
    """A ledger that cannot be read, is older than the checkpoint, or does not know a file."""


class Stamp(NamedTuple):
    """What tells a file from others, and from its own former content."""

    name: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, name: str, status: os.stat_result) -> "Stamp":
        return cls(name, status.st_size, status.st_mtime_ns, status.st_ino)


class Entry(NamedTuple):
    """A file in the ledger."""

    number: int
    stamp: Stamp
    received: int
    """When it was first seen: microseconds since 1970."""
    id: str
    """Its name, made unique where a name repeats: what the ids of its messages begin with."""


class Ledger:
    """The ledger in a file, which is made if it is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._waiting: dict[int, Entry] = {}
        self._known: set[Stamp] = set()
        self._ids: set[str] = set()
        self.next = 0
        """The number that the next new file gets."""
        with self._locked():
            pass

    def require(self, count: int) -> None:
        """Refuse to go on if so many files have had numbers, and the ledger does not know of all."""
        if self.next < count:
            # Their numbers would be given again, to files that no batch has, as it begins behind them.
            reason = f"it knows {self.next} files, and {count} were numbered"
            remedy = "restore both from one moment, or remove the source's checkpoint"
            raise LedgerError("bad-ledger", f"{self._path} is older than the checkpoint: {reason}; {remedy}")

    def enter(self, stamps: Iterable[Stamp], received: int) -> None:
        """Give the files that are not yet known their numbers. They are on disk when this returns."""
        fresh = [stamp for stamp in stamps if stamp not in self._known]
        if not fresh:
            return
        with self._locked() as file:
            # Another process may have been quicker.
            entries = []
            for number, stamp in enumerate((s for s in fresh if s not in self._known), self.next):
                entries.append(Entry(number, stamp, received, self._unique(stamp.name, number)))
            self._append(file, [[entry.number, *entry.stamp, received, entry.id] for entry in entries])
            for entry in entries:
                self._add(entry)

    def close(self, numbers: Iterable[int], *, gone: bool) -> None:
        """Be done with files. If they are gone, the same file may come back as a new one."""
        with self._locked() as file:
            waiting = [number for number in numbers if number in self._waiting]
            self._append(file, [[number, gone] for number in waiting])
            for number in waiting:
                self._done(number, gone=gone)

    def first(self) -> int:
        """The first file that is not done with, or the next to come."""
        return min(self._waiting, default=self.next)

    def waiting(self, before: int) -> list[Entry]:
        """The files below a number that are not done with, by what all processes have written."""
        with self._locked():
            pass
        return [entry for number, entry in sorted(self._waiting.items()) if number < before]

    def entry(self, number: int) -> Entry:
        """A file by number. Those that are done with are looked up on disk."""
        if number in self._waiting:
            return self._waiting[number]
        with self._path.open("rb") as file:
            for line in file:
                if line.startswith(b'[%d, "' % number):
                    return _entry(json.loads(line))
        raise LedgerError(
            "unknown-file", f"{self._path} has no file {number}; was it replaced by another ledger?"
        )

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The open file, locked, with all that others have written read, and half a last line cut off."""
        try:
            with self._path.open("a+b") as file:
                if self._read == 0:
                    sync_folder(self._path.parent)
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        # Whoever wrote it died before it counted.
                        file.truncate(self._read)
                        break
                    self._take(json.loads(line))
                    self._read += len(line)
                yield file
        except (OSError, ValueError) as error:
            raise LedgerError("bad-ledger", f"{self._path} cannot be used: {error}") from error

    def _append(self, file: IO[bytes], lines: list[list[Any]]) -> None:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        self._read += len(data)

    def _take(self, line: list[Any]) -> None:
        if len(line) == 2:
            self._done(line[0], gone=line[1])
        else:
            self._add(_entry(line))

    def _add(self, entry: Entry) -> None:
        self._waiting[entry.number] = entry
        self._known.add(entry.stamp)
        self._ids.add(entry.id)
        self.next = entry.number + 1

    def _done(self, number: int, *, gone: bool) -> None:
        entry = self._waiting.pop(number, None)
        if entry and gone:
            self._known.discard(entry.stamp)

    def _unique(self, name: str, number: int) -> str:
        """The name, with the number where it repeats."""
        given = os.fsencode(name).decode("utf-8", "backslashreplace")
        while given in self._ids:
            given += f"~{number}"
        return given


def sync_folder(path: Path) -> None:
    """Make sure that what was made, moved or deleted in a folder is so on disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _entry(line: list[Any]) -> Entry:
    number, name, size, mtime_ns, inode, received, given = line
    return Entry(number, Stamp(name, size, mtime_ns, inode), received, given)
