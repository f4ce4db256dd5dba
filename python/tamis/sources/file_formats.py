"""The kinds of files that hold messages, told by their names; each has a reader of one form."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tamis.model.matching import Limits
from tamis.sources.bytestream import ByteStream, StreamError
from tamis.sources.json_lines import JsonLines
from tamis.sources.parquet import ParquetRows
from tamis.sources.raw_message import RAW_BYTES, Cut
from tamis.sources.record_splitter import RecordCutter, State

Position = dict[str, Any]
"""Where reading a file stands: through JSON and back. `number` is how many cuts were made."""


class Reader(Protocol):
    """Reads a file from a position on."""

    @property
    def position(self) -> Position:
        """Where a new reader would go on."""

    def cuts(self) -> Iterator[Cut]:
        """What the file holds."""

    def sizes(self) -> Iterator[int]:
        """About how many bytes each of the cuts has, without making them."""


class WholeFile:
    """A file that is one message."""

    def __init__(self, path: Path, limits: Limits, position: Position | None = None) -> None:
        self._path = path
        self._limit = limits.document
        self._number: int = position["number"] if position else 0

    @property
    def position(self) -> Position:
        return {"number": self._number}

    def sizes(self) -> Iterator[int]:
        if self._number == 0:
            self._number = 1
            try:
                yield self._path.stat().st_size
            except OSError:
                yield 0

    def cuts(self) -> Iterator[Cut]:
        if self._number == 0:
            self._number = 1
            yield self._cut()

    def _cut(self) -> Cut:
        data = bytearray()
        try:
            with ByteStream(self._path) as stream:
                while len(data) <= self._limit and (piece := stream.read(self._limit + 1 - len(data))):
                    data += piece
        except StreamError as error:
            return Cut(1, 0, bytes(data[:RAW_BYTES]), error.code, error.reason)
        if len(data) > self._limit:
            reason = f"the message has more than {self._limit} bytes"
            return Cut(1, 0, bytes(data[:RAW_BYTES]), "document-limit", reason)
        return Cut(1, 0, bytes(data))


class _Unknown:
    """A file of no kind that is known: one cut that says so."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self.position: Position = {"number": 0}

    def sizes(self) -> Iterator[int]:
        return (len(cut.xml) for cut in self.cuts())

    def cuts(self) -> Iterator[Cut]:
        if self.position["number"] == 0:
            self.position = {"number": 1}
            reason = f"{self._name} is none of .xml, .xml.gz, .jsonl, .jsonl.gz and .parquet"
            yield Cut(1, 0, b"", "unknown-kind", reason)


def can_hold_many(name: str, record: str | None) -> bool:
    """Whether such a file may hold more than one message."""
    plain = name.removesuffix(".gz")
    return plain.endswith((".jsonl", ".parquet")) or (plain.endswith(".xml") and record is not None)


def can_be_divided(name: str, record: str | None) -> bool:
    """Whether a reader gets to the middle of such a file without reading what comes before."""
    return not name.endswith(".gz") and can_hold_many(name, record)


@contextmanager
def reading(
    path: Path, record: str | None, limits: Limits, position: Position | None = None
) -> Iterator[Reader]:
    """The reader of a file by its name; `StreamError` if the file cannot be opened.

    `record` is the element that XML files are cut at; without it they are messages as they are.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl") or (name.endswith(".xml") and record is not None):
        with ByteStream(path, position["offset"] if position else 0) as stream:
            if record is not None and name.endswith(".xml"):
                yield RecordCutter(stream, record, limits, State.from_json(position) if position else None)
            else:
                yield JsonLines(stream, limits, position)
    elif name.endswith(".xml"):
        yield WholeFile(path, limits, position)
    elif path.name.endswith(".parquet"):
        yield ParquetRows(path, position)
    else:
        yield _Unknown(path)
