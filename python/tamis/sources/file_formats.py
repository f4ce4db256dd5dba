"""The file formats that hold messages, by file name. Every format has a reader with the same interface."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tamis.model.matching import Limits
from tamis.sources.bytestream import ByteStream, StreamError
from tamis.sources.json_lines import JsonLines
from tamis.sources.raw_message import RAW_BYTES, RawMessage
from tamis.sources.record_splitter import RecordSplitter, State

Position = dict[str, Any]
"""How far a file was read, as JSON; `number` is how many messages were read."""


class Reader(Protocol):
    """Reads a file, starting at a position."""

    @property
    def position(self) -> Position:
        """Where a new reader would continue."""

    def messages(self) -> Iterator[RawMessage]:
        """The messages of the file."""

    def sizes(self) -> Iterator[int]:
        """About how many bytes each message has; cheaper than `messages`."""


class WholeFile:
    """A file that holds one message."""

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

    def messages(self) -> Iterator[RawMessage]:
        if self._number == 0:
            self._number = 1
            yield self._message()

    def _message(self) -> RawMessage:
        data = bytearray()
        try:
            with ByteStream(self._path) as stream:
                while len(data) <= self._limit and (chunk := stream.read(self._limit + 1 - len(data))):
                    data += chunk
        except StreamError as error:
            return RawMessage(1, 0, bytes(data[:RAW_BYTES]), error.code, error.reason)
        if len(data) > self._limit:
            reason = f"the message has more than {self._limit} bytes"
            return RawMessage(1, 0, bytes(data[:RAW_BYTES]), "document-limit", reason)
        return RawMessage(1, 0, bytes(data))


class _UnknownFormat:
    """A file with an unknown suffix: one dead letter that says so."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self.position: Position = {"number": 0}

    def sizes(self) -> Iterator[int]:
        return (len(message.xml) for message in self.messages())

    def messages(self) -> Iterator[RawMessage]:
        if self.position["number"] == 0:
            self.position = {"number": 1}
            reason = f"{self._name} is none of .xml, .xml.gz, .jsonl, .jsonl.gz and .parquet"
            yield RawMessage(1, 0, b"", "unknown-kind", reason)


def can_hold_many(name: str, record: str | None) -> bool:
    """Whether a file with this name may hold more than one message."""
    plain = name.removesuffix(".gz")
    return plain.endswith((".jsonl", ".parquet")) or (plain.endswith(".xml") and record is not None)


def is_seekable(name: str, record: str | None) -> bool:
    """Whether a reader can start in the middle of such a file without reading everything before."""
    return not name.endswith(".gz") and can_hold_many(name, record)


@contextmanager
def open_reader(
    path: Path, record: str | None, limits: Limits, position: Position | None = None
) -> Iterator[Reader]:
    """Open the reader for a file, chosen by its name; `StreamError` if the file cannot be opened.

    XML files are split at the element `record`; without one, a file is one message.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl") or (name.endswith(".xml") and record is not None):
        with ByteStream(path, position["offset"] if position else 0) as stream:
            if record is not None and name.endswith(".xml"):
                yield RecordSplitter(stream, record, limits, State.from_json(position) if position else None)
            else:
                yield JsonLines(stream, limits, position)
    elif name.endswith(".xml"):
        yield WholeFile(path, limits, position)
    elif path.name.endswith(".parquet"):
        # Here, because the settings of a job import this module, and its JVM waits for them.
        from tamis.sources.parquet import ParquetRows

        yield ParquetRows(path, position)
    else:
        yield _UnknownFormat(path)
