"""What arrived over the links of a broker: a journal that numbers it anew, and the messages.

    arrivals.jsonl             one line for each parcel: its position, and the number of its arrival
    arrivals/000000000012.arrow   the messages of arrival 12, as envelopes

A line is the commit: with it a parcel is stored, the position of its link has moved, and its messages have
their number. Before it, their file is a draft that the next one replaces. The messages are one stream for the
job, which deletes those that it has processed.
"""

import json
import threading
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tamis.model.envelope import with_added_columns
from tamis.network.parcel import LINK_ERRORS, Parcel, Position
from tamis.storage.files import atomic_file, fsync
from tamis.storage.lines import append_line, read_lines

MAX_LINES = 100_000
"""A longer journal is truncated to its newest lines when it is opened."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The messages of a parcel."""

    number: int
    """From 0, without gaps, over all links."""
    link: str
    position: Position
    rows: int
    bytes: int


class Arrivals:
    """The journal as its one writer uses it; each link has a thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "arrivals.jsonl"
        self._data = folder / "arrivals"
        self._lock = threading.Lock()
        self._positions: dict[str, Position] = {}
        self._hashes: dict[str, set[str]] = {}
        self._next = 0
        with LINK_ERRORS.at(folder):
            self._data.mkdir(parents=True, exist_ok=True)
            lines = read_lines(self._path)
            if len(lines) > MAX_LINES:
                lines = self._shorten(lines)
        for line in lines:
            self._apply(line)

    def position(self, link: str) -> Position | None:
        """What is stored last of a link; None if nothing is."""
        with self._lock:
            return self._positions.get(link)

    def has(self, link: str, hash: str) -> bool:
        """Whether a parcel with this hash is stored, perhaps from an earlier log."""
        with self._lock:
            return hash in self._hashes.get(link, ())

    def store(self, link: str, parcel: Parcel, messages: pa.Table | None) -> None:
        """Store a parcel, with its messages if it has any; they are durable when this returns."""
        with self._lock, LINK_ERRORS.at(self._path.parent):
            line = {
                "link": link,
                "epoch": parcel.epoch,
                "number": parcel.number,
                "hash": parcel.hash,
                "kind": parcel.kind,
            }
            if messages is not None and messages.num_rows:
                with atomic_file(self._file(self._next)) as draft:
                    with (
                        pa.OSFile(str(draft), "wb") as file,
                        pa.ipc.new_file(file, messages.schema) as writer,
                    ):
                        writer.write_table(messages)
                    fsync(draft)
                line |= {"arrival": self._next, "rows": messages.num_rows, "bytes": messages.nbytes}
            append_line(self._path, line)
            self._apply(line)

    def _apply(self, line: dict[str, object]) -> None:
        link = str(line["link"])
        position = _position(line)
        self._positions[link] = position
        self._hashes.setdefault(link, set()).add(position.hash)
        if "arrival" in line:
            self._next = int(str(line["arrival"])) + 1

    def _shorten(self, lines: list[dict[str, object]]) -> list[dict[str, object]]:
        """The newest lines, the last one of each link, and those whose messages are not processed."""
        last = {line["link"]: at for at, line in enumerate(lines)}
        arrivals = [at for at, line in enumerate(lines) if "arrival" in line]
        newest = len(lines) - MAX_LINES // 4
        kept = [
            line
            for at, line in enumerate(lines)
            if at >= newest
            or at in (last[line["link"]], arrivals[-1] if arrivals else -1)
            or ("arrival" in line and self._file(int(str(line["arrival"]))).exists())
        ]
        with atomic_file(self._path) as draft:
            draft.write_text("".join(json.dumps(line) + "\n" for line in kept))
        return kept

    def _file(self, number: int) -> Path:
        return self._data / _name(number)


class ArrivedMessages:
    """The messages as the job reads them, perhaps in another process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "arrivals.jsonl"
        self._data = folder / "arrivals"
        self._read = 0
        self._arrivals: dict[int, Arrival] = {}
        self._inode = -1

    def next(self) -> int:
        """The number that the next arrival gets."""
        self._refresh()
        return max(self._arrivals, default=-1) + 1

    def until(self, start: int, rows: int, bytes: int) -> int:
        """The end of a batch that begins with arrival `start`: one arrival, and more up to the limits."""
        end = start
        for number in range(start, self.next()):
            arrival = self._arrivals.get(number)
            if arrival is not None:
                rows, bytes = rows - arrival.rows, bytes - arrival.bytes
                if end > start and (rows < 0 or bytes < 0):
                    break
            end = number + 1
        return end

    def read(self, number: int) -> pa.Table:
        """The messages of an arrival."""
        path = self._data / _name(number)
        with LINK_ERRORS.at(path), pa.memory_map(str(path)) as file:
            return with_added_columns(pa.ipc.open_file(file).read_all())

    def remove(self, before: int) -> None:
        """Delete the messages of arrivals that are processed."""
        with LINK_ERRORS.at(self._data):
            for path in self._data.glob("*.arrow"):
                if path.stem.isdecimal() and int(path.stem) < before:
                    path.unlink(missing_ok=True)

    def _refresh(self) -> None:
        """Read the lines that are new. The journal is a new file if it was truncated."""
        if not self._path.exists():
            return
        with LINK_ERRORS.at(self._path), self._path.open("rb") as file:
            inode = self._path.stat().st_ino
            if inode != self._inode:
                self._inode, self._read = inode, 0
            file.seek(self._read)
            for text in file:
                if not text.endswith(b"\n"):
                    break
                self._read += len(text)
                line = json.loads(text)
                if "arrival" in line:
                    number = line["arrival"]
                    self._arrivals[number] = Arrival(
                        number, line["link"], _position(line), line["rows"], line["bytes"]
                    )


def _position(line: dict[str, object]) -> Position:
    return Position(str(line["epoch"]), int(str(line["number"])), str(line["hash"]))


def _name(number: int) -> str:
    return f"{number:012}.arrow"
