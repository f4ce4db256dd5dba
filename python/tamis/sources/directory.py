"""An inbox directory as a source: what is new, what a batch takes of it, what becomes of files.

Files enter by rename. They are listed by the driver and numbered in a ledger; an offset is the number of a
file and a position in it, and stands for all that comes before. Where a batch may end is found by reading
ahead on the driver; what is in it is read by the workers.
"""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from tamis.errors import TamisError
from tamis.model.matching import Limits
from tamis.sources.bytestream import StreamError
from tamis.sources.file_formats import Position, Reader, can_be_divided, reading
from tamis.sources.ledger import Entry, Ledger, Stamp, sync_folder
from tamis.sources.raw_message import Cut

OPENING = 4 << 10
"""What opening a file costs, in bytes: many empty files are work too."""


class SourceError(TamisError):
    """Settings of a source that cannot be."""


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """An inbox. All paths are such that driver and workers see the same files."""

    name: str
    tenant: str
    path: Path
    limits: Limits = field(default_factory=Limits)
    schema: str | None = None
    """The DTD that its messages conform to."""
    record: str | None = None
    """The element that XML files are cut at: `item`, `p:item` as written, or `{uri}item`."""
    after: Literal["move", "delete", "keep"] = "move"
    """What becomes of a file when the batch that ends it is committed."""
    max_files: int = 10_000
    max_bytes: int = 128 << 20
    max_records: int = 100_000
    """What one batch takes at most; a large file is spread over several."""

    def __post_init__(self) -> None:
        if self.record is not None and not re.fullmatch(r"(\{[^{}]*\})?[^\s<>/{}]+", self.record):
            reason = f"{self.record!r} names no element: write `item`, `p:item` or `{{uri}}item`"
            raise SourceError("bad-record", f"source {self.name}: {reason}")
        if self.after not in ("move", "delete", "keep"):
            reason = f"after is move, delete or keep, not {self.after!r}"
            raise SourceError("bad-after", f"source {self.name}: {reason}")
        for cap in ("max_files", "max_bytes", "max_records"):
            if getattr(self, cap) < 1:
                raise SourceError("bad-cap", f"source {self.name}: {cap} must be at least 1")

    @property
    def place(self) -> str:
        """For errors."""
        return str(self.path)

    @property
    def done(self) -> Path:
        """Where files go that are done with."""
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
    """All files below a number, and one file up to a position."""

    file: int
    position: Position | None = None

    @property
    def number(self) -> int | None:
        """The last cut of the file that is among it."""
        return None if self.position is None else self.position["number"]

    @property
    def files(self) -> int:
        """How many files it has something of."""
        return self.file + (self.position is not None)

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "position": self.position}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(value["file"], value["position"])


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file that one task reads: from a position on, to the cut with a number."""

    entry: Entry
    start: Position | None
    until: int | None
    """None: to the end of the file."""
    size: int


class Inbox:
    """The driver's view of an inbox."""

    def __init__(self, source: DirectorySource, tasks: int) -> None:
        """`tasks` is how many tasks a batch is divided over."""
        self._source = source
        self._tasks = tasks
        source.path.mkdir(parents=True, exist_ok=True)
        self._ledger = Ledger(source.ledger)
        self._walk: _Walk | None = None
        nowhere = Offset(-1)
        self._planned: tuple[Offset, Offset, list[Piece]] = (nowhere, nowhere, [])

    def first(self) -> Offset:
        """Where a new query starts: at the first file that no other has finished."""
        return Offset(self._ledger.first())

    def look(self, start: Offset) -> Offset:
        """List the inbox, number what is new, oldest first; the offset behind all of it.

        `start` is where the next batch begins: a ledger that does not reach so far gives no numbers.
        """
        self._ledger.require(start.files)
        try:
            stamps = _listing(self._source.path)
        except OSError as error:
            reason = f"source {self._source.name}: the inbox {self._source.path} cannot be listed"
            raise SourceError("no-inbox", f"{reason}: {error.strerror}") from error
        self._ledger.enter(stamps, time.time_ns() // 1000)
        return self.seen()

    def seen(self) -> Offset:
        """The offset behind all that has a number."""
        return Offset(self._ledger.next)

    def advance(self, start: Offset, end: Offset) -> Offset:
        """Where a batch from `start` ends: not behind `end`, and when it has taken what it may."""
        source = self._source
        return self._plan(start, end, source.max_files, source.max_bytes, source.max_records)

    def advance_fully(self, start: Offset, end: Offset) -> Offset:
        """Where a batch from `start` ends that takes all there is."""
        return self._plan(start, end, sys.maxsize, sys.maxsize, sys.maxsize)

    def _plan(self, start: Offset, end: Offset, files: int, size: int, records: int) -> Offset:
        """Walk over files until so much is taken, dividing large ones into pieces on the way."""
        share = max(self._source.max_bytes // (2 * self._tasks), 1 << 20)
        pieces: list[Piece] = []
        here = start
        while here.file < end.file and files > 0 and size > 0 and records > 0:
            walk = self._walk_on(here)
            files -= 1
            begin, taken = here.position, OPENING
            while size > 0 and records > 0 and (amount := walk.step()) is not None:
                size -= amount
                records -= 1
                taken += amount
                if taken >= share and walk.can_be_divided:
                    pieces.append(Piece(walk.entry, begin, walk.position["number"], taken))
                    begin, taken = walk.position, 0
            size -= OPENING
            here = Offset(here.file + 1) if walk.is_at_end() else Offset(here.file, walk.position)
            if taken:
                pieces.append(Piece(walk.entry, begin, here.number, taken))
        self._planned = (start, here, pieces)
        return here

    def _walk_on(self, here: Offset) -> "_Walk":
        """A walk from an offset: the last one if it stands there, so that a large file is read once."""
        walk = self._walk
        if walk is None or (walk.entry.number, walk.position) != (here.file, here.position):
            self.close()
            walk = self._walk = _Walk(self._source, self._ledger.entry(here.file), here.position)
        return walk

    def close(self) -> None:
        """Close what is open."""
        if self._walk is not None:
            self._walk.close()
            self._walk = None

    def pieces(self, start: Offset, end: Offset) -> list[list[Piece]]:
        """What each task of a batch reads: about as many bytes as the others."""
        if start == end:
            return []
        planned_start, planned_end, pieces = self._planned
        if (planned_start, planned_end) != (start, end):
            pieces = self._replan(start, end)
        tasks: list[list[Piece]] = [[] for _ in range(min(self._tasks, len(pieces)))]
        loads = [0] * len(tasks)
        for piece in sorted(pieces, key=lambda piece: -piece.size):
            least = loads.index(min(loads))
            tasks[least].append(piece)
            loads[least] += piece.size
        return tasks

    def _replan(self, start: Offset, end: Offset) -> list[Piece]:
        """The pieces of a batch that was planned before this process started: one a file."""
        self._ledger.require(end.files)
        pieces = []
        for number in range(start.file, end.files):
            entry = self._ledger.entry(number)
            position = start.position if number == start.file else None
            until = end.number if number == end.file else None
            pieces.append(Piece(entry, position, until, entry.stamp.size + OPENING))
        return pieces

    def commit(self, end: Offset) -> None:
        """Be done with the files below an offset."""
        entries = self._ledger.waiting(end.file)
        if not entries:
            return
        gone = [entry.number for entry in entries if self._put_away(entry)]
        # First the files, then the ledger: after a crash a file that is not marked is put away again, but one
        # that is marked and still there would be new.
        for folder in (self._source.path, self._source.done):
            if folder.is_dir():
                sync_folder(folder)
        self._ledger.close(gone, gone=True)
        self._ledger.close((entry.number for entry in entries), gone=False)

    def _put_away(self, entry: Entry) -> bool:
        """Move or delete a file; whether it is gone from the inbox."""
        source = self._source
        path = source.path / entry.stamp.name
        if source.after == "keep":
            return False
        try:
            if Stamp.of(entry.stamp.name, path.stat()) != entry.stamp:
                # Another file has taken its name.
                return True
            if source.after == "move":
                source.done.mkdir(exist_ok=True)
                path.rename(source.done / _done_name(entry))
            else:
                path.unlink()
        except FileNotFoundError:
            return True
        except OSError:
            # It stays, and stays known.
            return False
        return True


class _Walk:
    """A reader on its way through a file, on the driver: only sizes and positions are wanted."""

    def __init__(self, source: DirectorySource, entry: Entry, position: Position | None) -> None:
        self.entry = entry
        self.can_be_divided = can_be_divided(entry.stamp.name, source.record)
        self._ahead: int | None = None
        self._behind: Position | None = position
        self._stack = ExitStack()
        self._reader: Reader | None = None
        self._sizes: Iterator[int] = iter((0,))
        try:
            path = locate(source, entry)
            self._reader = self._stack.enter_context(reading(path, source.record, source.limits, position))
            self._sizes = self._reader.sizes()
        except StreamError:
            # One cut, which will say so when a task fails to open it too.
            pass

    @property
    def position(self) -> Position:
        """Behind the last step."""
        if self._ahead is None and self._reader is not None:
            return self._reader.position
        return self._behind or {"number": 0}

    def step(self) -> int | None:
        """The size of the next cut; none at the end of the file."""
        ahead, self._ahead = self._ahead, None
        return next(self._sizes, None) if ahead is None else ahead

    def is_at_end(self) -> bool:
        """Whether no cut follows."""
        if self._ahead is None:
            behind = self.position
            self._ahead = next(self._sizes, None)
            self._behind = behind
        return self._ahead is None

    def close(self) -> None:
        self._stack.close()


def locate(source: DirectorySource, entry: Entry) -> Path:
    """Where a file is now; `StreamError` if it is neither in the inbox nor among those done with."""
    for path in (source.path / entry.stamp.name, source.done / _done_name(entry)):
        try:
            if Stamp.of(entry.stamp.name, path.stat()) == entry.stamp:
                return path
        except OSError:
            continue
    raise StreamError("vanished", f"{entry.stamp.name} was removed or replaced before it was read")


def read_piece(source: DirectorySource, piece: Piece) -> Iterator[Cut]:
    """What a piece holds. A file that cannot be read is a cut that says so."""
    try:
        path = locate(source, piece.entry)
        with reading(path, source.record, source.limits, piece.start) as reader:
            for cut in reader.cuts():
                yield cut
                if cut.number == piece.until:
                    return
    except StreamError as error:
        number = 1 + (piece.start["number"] if piece.start else 0)
        yield Cut(number, 0, b"", error.code, error.reason)


def _listing(path: Path) -> list[Stamp]:
    """The files of an inbox, oldest first."""
    stamps = []
    with os.scandir(path) as files:
        for file in files:
            if not _is_entering(file.name) and file.is_file():
                with suppress(FileNotFoundError):
                    stamps.append(Stamp.of(file.name, file.stat()))
    return sorted(stamps, key=lambda stamp: (stamp.mtime_ns, stamp.name))


def _is_entering(name: str) -> bool:
    """Whether a name says that its file is not yet there."""
    return name.startswith((".", "_")) or name.endswith((".tmp", ".part"))


def _done_name(entry: Entry) -> str:
    """Names repeat over time; what is done with must not be overwritten."""
    repeats = entry.id.endswith(f"~{entry.number}")
    return f"{entry.stamp.name}~{entry.number}" if repeats else entry.stamp.name
