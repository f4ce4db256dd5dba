"""An inbox directory as a source: list new files, plan batches, read slices of files, remove finished files.

Publishers put files into the inbox by rename. The driver lists them and numbers them in a ledger. An offset
is the number of a file and a position in it; it covers everything before. The driver scans ahead to find
where a batch ends; the workers read its messages.
"""

import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from tamis.errors import TamisError
from tamis.model.headers import HeaderError, pack_headers
from tamis.model.matching import Limits
from tamis.model.printable import printable
from tamis.sources.bytestream import StreamError
from tamis.sources.file_formats import Position, Reader, is_seekable, open_reader
from tamis.sources.ledger import Entry, FileIdentity, Ledger
from tamis.sources.raw_message import RawMessage
from tamis.sources.side_car import is_side_car, read_side_car, side_car_of
from tamis.storage.files import fsync

log = logging.getLogger(__name__)

OPEN_COST = 4 << 10
"""The cost of opening a file, in bytes: many empty files are work too."""


MAX_REPORTED = 1_000
"""Skipped entries of an inbox that are reported; more would flood the log."""


class SourceError(TamisError):
    """Invalid settings of a source, or an inbox that cannot be listed."""


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """An inbox. Driver and workers see the same files under its paths."""

    name: str
    tenant: str
    path: Path
    limits: Limits = field(default_factory=Limits)
    schema: str | None = None
    """The DTD that its messages conform to."""
    record: str | None = None
    """The element to split XML files at: `item`, `p:item` as written, or `{uri}item`."""
    after: Literal["move", "delete", "keep"] = "move"
    """What happens to a file when the batch that finishes it is committed."""
    follow_links: bool = False
    """Whether symbolic links to files are read; otherwise they are skipped."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of all its messages; those of a message itself count before them."""
    max_files: int = 10_000
    max_bytes: int = 128 << 20
    max_records: int = 100_000
    """The most that one batch may read; a large file is spread over several batches."""

    def __post_init__(self) -> None:
        if self.record is not None and not re.fullmatch(r"(\{[^{}]*\})?[^\s<>/{}]+", self.record):
            reason = f"{self.record!r} is not an element name: write `item`, `p:item` or `{{uri}}item`"
            raise SourceError("bad-record", f"source {self.name}: {reason}")
        if self.after not in ("move", "delete", "keep"):
            reason = f"after is move, delete or keep, not {self.after!r}"
            raise SourceError("bad-after", f"source {self.name}: {reason}")
        if not isinstance(self.follow_links, bool):
            reason = f"follow_links is true or false, not {self.follow_links!r}"
            raise SourceError("bad-setting", f"source {self.name}: {reason}")
        try:
            pack_headers(self.headers)
        except HeaderError as error:
            raise SourceError(error.code, f"source {self.name}: {error.reason}") from error
        for cap in ("max_files", "max_bytes", "max_records"):
            if getattr(self, cap) < 1:
                raise SourceError("bad-cap", f"source {self.name}: {cap} must be at least 1")

    @property
    def location(self) -> str:
        """Names it in error messages."""
        return str(self.path)

    @property
    def done(self) -> Path:
        """Where finished files are moved."""
        return self.path.with_name(f"{self.path.name}.done")

    @property
    def ledger(self) -> Path:
        return self.path.with_name(f"{self.path.name}.ledger")

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "path": str(self.path)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**{**value, "path": Path(value["path"]), "limits": Limits(**value["limits"])})


@dataclass(frozen=True, slots=True)
class Offset:
    """All files below a number, and one more file up to a position."""

    file: int
    position: Position | None = None

    @property
    def number(self) -> int | None:
        """The number of the last message before the position."""
        return None if self.position is None else self.position["number"]

    @property
    def files(self) -> int:
        """How many files it covers, at least in part."""
        return self.file + (self.position is not None)

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "position": self.position}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(value["file"], value["position"])


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A part of a file that one task reads: from a position to the message with a number."""

    entry: Entry
    start: Position | None
    until: int | None
    """None: to the end of the file."""
    size: int


class Inbox:
    """The driver's view of an inbox."""

    def __init__(self, source: DirectorySource, tasks: int) -> None:
        """`tasks` is the number of tasks in a batch."""
        self._source = source
        self._tasks = tasks
        source.path.mkdir(parents=True, exist_ok=True)
        self._ledger = Ledger(source.ledger)
        self._scan: _FileScan | None = None
        self._skipped: set[str] = set()
        none = Offset(-1)
        self._planned: tuple[Offset, Offset, list[FileSlice]] = (none, none, [])

    def first_offset(self) -> Offset:
        """Where a new checkpoint starts: at the first unfinished file."""
        return Offset(self._ledger.first_unfinished())

    def list_files(self, start: Offset) -> Offset:
        """List the inbox and number its new files, oldest first; the offset after all of them.

        `start` is where the next batch starts: a ledger that is older than that raises.
        """
        self._ledger.require_count(start.files)
        try:
            identities = self._list_files()
        except OSError as error:
            reason = f"source {self._source.name}: the inbox {self._source.path} cannot be listed"
            raise SourceError("no-inbox", f"{reason}: {error.strerror}") from error
        self._ledger.add_files(identities, time.time_ns() // 1000)
        return self.latest_offset()

    def _list_files(self) -> list[FileIdentity]:
        """The files of the inbox, oldest first. Everything else is skipped, and reported once."""
        identities = []
        with os.scandir(self._source.path) as entries:
            for entry in entries:
                if not (_is_incomplete(entry.name) or is_side_car(entry.name)):
                    try:
                        reason = self._skip_reason(entry)
                        if reason is None:
                            status = entry.stat(follow_symlinks=self._source.follow_links)
                            identities.append(FileIdentity.of(entry.name, status))
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        reason = str(error.strerror)
                    if reason is not None:
                        self._report_skipped(entry.name, reason)
        return sorted(identities, key=lambda identity: (identity.mtime_ns, identity.name))

    def _skip_reason(self, entry: "os.DirEntry[str]") -> str | None:
        """Why an entry of the inbox is not read; None if it is."""
        if entry.is_symlink() and not self._source.follow_links:
            return "it is a symbolic link; see the setting follow_links"
        if entry.is_file(follow_symlinks=self._source.follow_links):
            return None
        return (
            "it is a folder; move its files into the inbox" if entry.is_dir() else "it is not a regular file"
        )

    def _report_skipped(self, name: str, reason: str) -> None:
        if name not in self._skipped and len(self._skipped) < MAX_REPORTED:
            self._skipped.add(name)
            log.warning("source %s: skipped %s: %s", self._source.name, printable(name), reason)

    def latest_offset(self) -> Offset:
        """The offset after all numbered files."""
        return Offset(self._ledger.next)

    def advance(self, start: Offset, end: Offset) -> Offset:
        """Where a batch from `start` ends: at the limits of a batch, or at `end`."""
        source = self._source
        return self._plan(start, end, source.max_files, source.max_bytes, source.max_records)

    def advance_fully(self, start: Offset, end: Offset) -> Offset:
        """Where a batch from `start` without limits ends."""
        return self._plan(start, end, sys.maxsize, sys.maxsize, sys.maxsize)

    def _plan(self, start: Offset, end: Offset, files: int, size: int, records: int) -> Offset:
        """Scan files until a limit is reached, dividing large ones into slices on the way."""
        share = max(self._source.max_bytes // (2 * self._tasks), 1 << 20)
        slices: list[FileSlice] = []
        current = start
        while current.file < end.file and files > 0 and size > 0 and records > 0:
            scan = self._scan_from(current)
            files -= 1
            begin, scanned = current.position, OPEN_COST
            while size > 0 and records > 0 and (amount := scan.next_size()) is not None:
                size -= amount
                records -= 1
                scanned += amount
                if scanned >= share and scan.is_seekable:
                    slices.append(FileSlice(scan.entry, begin, scan.position["number"], scanned))
                    begin, scanned = scan.position, 0
            size -= OPEN_COST
            current = Offset(current.file + 1) if scan.is_at_end() else Offset(current.file, scan.position)
            if scanned:
                slices.append(FileSlice(scan.entry, begin, current.number, scanned))
        self._planned = (start, current, slices)
        return current

    def _scan_from(self, offset: Offset) -> "_FileScan":
        """A scan from an offset: the last one if it is there, so that a large file is read only once."""
        scan = self._scan
        if scan is None or (scan.entry.number, scan.position) != (offset.file, offset.position):
            self.close()
            scan = self._scan = _FileScan(self._source, self._ledger.entry(offset.file), offset.position)
        return scan

    def close(self) -> None:
        """Close the open file, if any."""
        if self._scan is not None:
            self._scan.close()
            self._scan = None

    def slices(self, start: Offset, end: Offset) -> list[list[FileSlice]]:
        """The slices that each task of a batch reads; tasks get about the same number of bytes."""
        if start == end:
            return []
        planned_start, planned_end, slices = self._planned
        if (planned_start, planned_end) != (start, end):
            slices = self._replan(start, end)
        tasks: list[list[FileSlice]] = [[] for _ in range(min(self._tasks, len(slices)))]
        loads = [0] * len(tasks)
        for slice_ in sorted(slices, key=lambda slice_: -slice_.size):
            least = loads.index(min(loads))
            tasks[least].append(slice_)
            loads[least] += slice_.size
        return tasks

    def _replan(self, start: Offset, end: Offset) -> list[FileSlice]:
        """The slices of a batch that another process planned: one per file."""
        self._ledger.require_count(end.files)
        slices = []
        for number in range(start.file, end.files):
            entry = self._ledger.entry(number)
            position = start.position if number == start.file else None
            until = end.number if number == end.file else None
            slices.append(FileSlice(entry, position, until, entry.identity.size + OPEN_COST))
        return slices

    def commit(self, end: Offset) -> None:
        """Finish the files below an offset: move or delete them, then mark them in the ledger."""
        entries = self._ledger.unfinished(end.file)
        if not entries:
            return
        removed = [entry.number for entry in entries if self._remove(entry)]
        # First the files, then the ledger: after a crash, an unmarked file is removed again, but a marked one
        # that is still there would count as new.
        for folder in (self._source.path, self._source.done):
            if folder.is_dir():
                fsync(folder)
        self._ledger.finish(removed, removed=True)
        self._ledger.finish((entry.number for entry in entries), removed=False)

    def _remove(self, entry: Entry) -> bool:
        """Move or delete a file, as configured; whether it is gone from the inbox."""
        source = self._source
        path = source.path / entry.identity.name
        if source.after == "keep":
            return False
        try:
            if FileIdentity.of(entry.identity.name, _stat(source, path)) != entry.identity:
                # Another file has its name now.
                return True
            if source.after == "move":
                source.done.mkdir(exist_ok=True)
                done = source.done / _done_name(entry)
                # First: a file that is among the finished ones has its side-car there.
                with suppress(FileNotFoundError):
                    side_car_of(path).rename(side_car_of(done))
                path.rename(done)
            else:
                path.unlink()
                side_car_of(path).unlink(missing_ok=True)
        except FileNotFoundError:
            return True
        except OSError:
            # It stays in the inbox and in the ledger.
            return False
        return True


class _FileScan:
    """A scan of a file on the driver, for the sizes and positions of its messages."""

    def __init__(self, source: DirectorySource, entry: Entry, position: Position | None) -> None:
        self.entry = entry
        self.is_seekable = is_seekable(entry.identity.name, source.record)
        self._next_size: int | None = None
        self._position: Position | None = position
        self._stack = ExitStack()
        self._reader: Reader | None = None
        self._sizes: Iterator[int] = iter((0,))
        try:
            path = locate_file(source, entry)
            self._reader = self._stack.enter_context(
                open_reader(path, source.record, source.limits, position)
            )
            self._sizes = self._reader.sizes()
        except StreamError:
            # It counts as one message; the task that fails to open it gives the reason.
            pass

    @property
    def position(self) -> Position:
        """After the last message that `next_size` gave."""
        if self._next_size is None and self._reader is not None:
            return self._reader.position
        return self._position or {"number": 0}

    def next_size(self) -> int | None:
        """The size of the next message; None at the end of the file."""
        size, self._next_size = self._next_size, None
        return self._scan_next() if size is None else size

    def is_at_end(self) -> bool:
        """Whether there are no more messages."""
        if self._next_size is None:
            position = self.position
            self._next_size = self._scan_next()
            self._position = position
        return self._next_size is None

    def _scan_next(self) -> int | None:
        try:
            return next(self._sizes, None)
        except Exception:
            # A defect of a reader: the file ends here, and the task that fails on it gives the reason.
            log.exception("%s cannot be scanned", self.entry.id)
            self._sizes = iter(())
            return 0

    def close(self) -> None:
        self._stack.close()


def locate_file(source: DirectorySource, entry: Entry) -> Path:
    """The path of a file, in the inbox or among the finished files; `StreamError` if it is in neither."""
    for path in (source.path / entry.identity.name, source.done / _done_name(entry)):
        try:
            if FileIdentity.of(entry.identity.name, _stat(source, path)) == entry.identity:
                return path
        except OSError:
            continue
    raise StreamError("vanished", f"{entry.identity.name} was removed or replaced before it was read")


def headers_of_file(source: DirectorySource, entry: Entry) -> dict[str, str]:
    """The headers of all messages of a file, of its source and side-car; `HeaderError` if they are bad."""
    own = read_side_car(side_car_of(source.path / entry.identity.name))
    own = own or read_side_car(side_car_of(source.done / _done_name(entry)))
    return {**source.headers, **own}


def read_slice(source: DirectorySource, slice_: FileSlice) -> Iterator[RawMessage]:
    """The messages of a slice. A file that cannot be read gives one region with the reason."""
    number = slice_.start["number"] if slice_.start else 0
    try:
        path = locate_file(source, slice_.entry)
        with open_reader(path, source.record, source.limits, slice_.start) as reader:
            for message in reader.messages():
                yield message
                number = message.number
                if number == slice_.until:
                    return
    except StreamError as error:
        yield RawMessage(number + 1, 0, b"", error.code, error.reason)
    except Exception as error:
        # A defect of a reader must not stop the source: the rest of the slice becomes one dead letter.
        log.exception("%s cannot be read", slice_.entry.id)
        reason = f"it cannot be read after message {number}: {type(error).__name__}: {error}"
        yield RawMessage(number + 1, 0, b"", "unreadable", reason)


def _stat(source: DirectorySource, path: Path) -> os.stat_result:
    """A link is not the file that it leads to, unless the source follows links."""
    return path.stat(follow_symlinks=source.follow_links)


def _is_incomplete(name: str) -> bool:
    """Whether a name marks a file that is still being written."""
    return name.startswith((".", "_")) or name.endswith((".tmp", ".part"))


def _done_name(entry: Entry) -> str:
    """The name of a finished file: it must not overwrite an earlier one of the same name."""
    is_repeated = entry.id.endswith(f"~{entry.number}")
    return f"{entry.identity.name}~{entry.number}" if is_repeated else entry.identity.name
