"""The ledger of an inbox: a log that gives each file a number. Offsets in checkpoints refer to these numbers.

A file is identified by name, size, time and inode: the same name with new content is a new file. The log is
append-only: one line when a file is first seen, one when it is finished. Several processes may write: each
takes the lock, reads the lines of the others, and then appends. In memory, a finished file costs its name.

    [0, "a.xml", 120, 1700000000000000000, 77, 1700000000000000, "a.xml"]     file 0 was seen
    [0, true]                                                                 it is finished and removed
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from tamis.errors import TamisError
from tamis.storage.files import fsync


class LedgerError(TamisError):
    """A ledger that cannot be read, is older than the checkpoint, or lacks a file."""


class FileIdentity(NamedTuple):
    """Distinguishes a file from others and from its own former content."""

    name: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, name: str, status: os.stat_result) -> "FileIdentity":
        return cls(name, status.st_size, status.st_mtime_ns, status.st_ino)


class Entry(NamedTuple):
    """A file in the ledger."""

    number: int
    identity: FileIdentity
    received: int
    """When it was first seen: microseconds since 1970."""
    id: str
    """Its name, made unique if the name occurred before: the prefix of its messages' ids."""


class Ledger:
    """The ledger in a file, which is created if it is missing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._unfinished: dict[int, Entry] = {}
        self._known: set[FileIdentity] = set()
        self._ids: set[str] = set()
        self.next = 0
        """The number that the next new file gets."""
        with self._locked():
            pass

    def require_count(self, count: int) -> None:
        """Raise if the ledger has fewer than `count` files, as an old copy of it has."""
        if self.next < count:
            # It would give the missing numbers to new files, which no batch would read.
            reason = f"it knows {self.next} files, and {count} were numbered"
            remedy = "restore both from one moment, or remove the source's checkpoint"
            raise LedgerError("bad-ledger", f"{self._path} is older than the checkpoint: {reason}; {remedy}")

    def add_files(self, identities: Iterable[FileIdentity], received: int) -> None:
        """Number the files that are new. The numbers are on disk when this returns."""
        new = [identity for identity in identities if identity not in self._known]
        if not new:
            return
        with self._locked() as file:
            # Another process may have added some of them.
            entries = []
            for number, identity in enumerate((s for s in new if s not in self._known), self.next):
                entries.append(Entry(number, identity, received, self._unique(identity.name, number)))
            self._append(file, [[entry.number, *entry.identity, received, entry.id] for entry in entries])
            for entry in entries:
                self._add(entry)

    def finish(self, numbers: Iterable[int], *, removed: bool) -> None:
        """Mark files as finished. If they were removed, the same file may come back as a new one."""
        with self._locked() as file:
            unfinished = [number for number in numbers if number in self._unfinished]
            self._append(file, [[number, removed] for number in unfinished])
            for number in unfinished:
                self._mark_finished(number, removed=removed)

    def first_unfinished(self) -> int:
        """The number of the first unfinished file, or else of the next new one."""
        return min(self._unfinished, default=self.next)

    def unfinished(self, before: int) -> list[Entry]:
        """The unfinished files below a number, after reading the lines of all processes."""
        with self._locked():
            pass
        return [entry for number, entry in sorted(self._unfinished.items()) if number < before]

    def entry(self, number: int) -> Entry:
        """A file by number. Finished files are looked up on disk."""
        if number in self._unfinished:
            return self._unfinished[number]
        with self._path.open("rb") as file:
            for line in file:
                if line.startswith(b'[%d, "' % number):
                    return _entry(json.loads(line))
        raise LedgerError(
            "unknown-file", f"{self._path} has no file {number}; was it replaced by another ledger?"
        )

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The open file, locked, after reading new lines; an incomplete last line is truncated."""
        try:
            with self._path.open("a+b") as file:
                if self._read == 0:
                    fsync(self._path.parent)
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        # Its writer crashed before the line took effect.
                        file.truncate(self._read)
                        break
                    self._apply(json.loads(line))
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

    def _apply(self, line: list[Any]) -> None:
        if len(line) == 2:
            self._mark_finished(line[0], removed=line[1])
        else:
            self._add(_entry(line))

    def _add(self, entry: Entry) -> None:
        self._unfinished[entry.number] = entry
        self._known.add(entry.identity)
        self._ids.add(entry.id)
        self.next = entry.number + 1

    def _mark_finished(self, number: int, *, removed: bool) -> None:
        entry = self._unfinished.pop(number, None)
        if entry and removed:
            self._known.discard(entry.identity)

    def _unique(self, name: str, number: int) -> str:
        """The name; if it occurred before, with the number appended."""
        unique = os.fsencode(name).decode("utf-8", "backslashreplace")
        while unique in self._ids:
            unique += f"~{number}"
        return unique


def _entry(line: list[Any]) -> Entry:
    number, name, size, mtime_ns, inode, received, file_id = line
    return Entry(number, FileIdentity(name, size, mtime_ns, inode), received, file_id)
