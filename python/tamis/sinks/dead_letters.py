"""Dead letters, each with its reason, as published Parquet files.

A dead letter is a message that was refused, a message that a transformation failed on, or a delivery that a
webhook never accepted.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import blake2b
from itertools import accumulate, groupby
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import SinkError
from tamis.model.batch import Batch
from tamis.sinks.formats import write_parquet
from tamis.sinks.published import Part, PartWriter, Publication, PublishedDirectory

_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("tenant", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    # The message id.
    pa.field("id", pa.string(), nullable=False),
    # The message's offset in its source; for a delivery, its target.
    pa.field("offset", pa.string(), nullable=False),
    pa.field("received", pa.timestamp("us", "UTC"), nullable=False),
    # The encoding, if the source fixes it; null: the XML declaration tells.
    pa.field("encoding", pa.string()),
    # The headers of the message: the text of a JSON object. Null without headers.
    pa.field("headers", pa.string()),
    pa.field("code", pa.string(), nullable=False),
    pa.field("reason", pa.string(), nullable=False),
    # The subscription whose transformation or delivery failed; null if the message itself was refused.
    pa.field("subscription", pa.string()),
    # The delivery that failed: `raw` is its payload. Null if `raw` is a message.
    pa.field("delivery", pa.string()),
    # The position of the error; null if the source found no message: then `raw` may be truncated.
    pa.field("position", pa.int64()),
    pa.field("line", pa.int64()),
    pa.field("column", pa.int64()),
    pa.field("raw", pa.binary(), nullable=False),
]

LETTER: pa.Schema = pa.schema(_COLUMNS)
"""A dead letter, as a row."""

_ROWS = 1_000
"""Rows that are read at a time, without the bytes of messages."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter without the bytes of its message."""

    tenant: str
    source: str
    id: str
    offset: str
    received: datetime
    encoding: str | None
    headers: str | None
    code: str
    reason: str
    subscription: str | None
    delivery: str | None
    position: int | None
    line: int | None
    column: int | None
    part: str
    row: int
    """The file that holds it, and its row there."""

    @property
    def key(self) -> str:
        """A unique key: a message that is refused twice has two letters."""
        return blake2b(f"{self.part}#{self.row}".encode(), digest_size=6).hexdigest()


_READ = [field.name for field in fields(Letter)][:-2]
_NOTHING: dict[str, Any] = dict.fromkeys(_READ)


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Selects letters by all criteria that are given."""

    keys: frozenset[str] = frozenset()
    """Keys of letters, or ids of messages or deliveries."""
    tenant: str | None = None
    source: str | None = None
    code: str | None = None
    since: datetime | None = None

    def accepts(self, letter: Letter) -> bool:
        return (
            (not self.keys or not self.keys.isdisjoint((letter.key, letter.id, letter.delivery)))
            and self.tenant in (None, letter.tenant)
            and self.source in (None, letter.source)
            and self.code in (None, letter.code)
            and (self.since is None or letter.received >= self.since)
        )


class DeadLetters(PublishedDirectory):
    """The dead letters of a job."""

    schema = LETTER

    def __init__(self, url: str | PathLike[str]) -> None:
        """A directory, or a URL that `pyarrow.fs` knows."""
        super().__init__(url, "parquet")

    def write(self, batch: Batch, partition: int, rows: Iterable[pa.RecordBatch]) -> list[Part]:
        """The parts that a task writes."""
        parts = PartWriter(self, batch)
        write_parquet(parts, partition, LETTER, rows)
        return parts.finish()

    def letters(self, criteria: LetterFilter) -> Iterator[Letter]:
        """The letters that a filter accepts, newest first."""
        for publication in self.newest_first():
            for part in reversed(publication.parts):
                if criteria.tenant in (None, part.tenant):
                    # A part is in memory as a whole, without the bytes of its messages.
                    found = [letter for letter in self._letters(part) if criteria.accepts(letter)]
                    yield from reversed(found)

    def _letters(self, part: Part) -> Iterator[Letter]:
        with self.place.opened(part.path) as file, pq.ParquetFile(file) as table:
            row = 0
            for batch in table.iter_batches(_ROWS, columns=_READ):
                for values in batch.to_pylist():
                    # Files of earlier versions have fewer columns.
                    yield Letter(**{**_NOTHING, **values}, part=part.path, row=row)
                    row += 1

    def raw(self, letter: Letter) -> bytes:
        """The bytes of a letter's message; possibly truncated."""
        [(_, raw)] = self.with_raw([letter])
        return raw

    def with_raw(self, letters: Iterable[Letter]) -> Iterator[tuple[Letter, bytes]]:
        """Letters with their messages' bytes. The letters of a part must be consecutive, in row order."""
        for part, group in groupby(letters, key=lambda letter: letter.part):
            yield from self._with_raw(part, group)

    def _with_raw(self, part: str, letters: Iterable[Letter]) -> Iterator[tuple[Letter, bytes]]:
        with self.place.opened(part) as file, pq.ParquetFile(file) as table:
            groups = range(table.metadata.num_row_groups)
            ends = list(accumulate(table.metadata.row_group(group).num_rows for group in groups))
            for group, some in groupby(letters, key=lambda letter: bisect_right(ends, letter.row)):
                column: Any = table.read_row_group(group, columns=["raw"]).column("raw")
                start = ends[group - 1] if group else 0
                for letter in some:
                    yield letter, column[letter.row - start].as_py()

    def read(self, publication: Publication) -> Iterator[pa.RecordBatch]:
        """The letters of a batch, as rows."""
        for part in publication.parts:
            with self.place.opened(part.path) as file, pq.ParquetFile(file) as table:
                yield from table.iter_batches(_ROWS)

    def newest_letter(self, key: str) -> Letter:
        """The newest letter with this key or message id."""
        for letter in self.letters(LetterFilter(frozenset([key]))):
            return letter
        raise SinkError("no-letter", f"{self.url} has no letter {key}: see tamis dead-letters list")
