"""Dead letters: messages that were refused, or that a transformation failed on, with the reason.

And deliveries that could not be made to a webhook.

Published like deliveries, in Parquet.
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
from tamis.sinks.published import Part, Parts, Publication, PublishedDirectory

_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("tenant", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    # The message id.
    pa.field("id", pa.string(), nullable=False),
    # Where the message stood in its source; for a delivery, its target.
    pa.field("offset", pa.string(), nullable=False),
    pa.field("received", pa.timestamp("us", "UTC"), nullable=False),
    # What the message is encoded in, where the source knows; null: the message says.
    pa.field("encoding", pa.string()),
    pa.field("code", pa.string(), nullable=False),
    pa.field("reason", pa.string(), nullable=False),
    # Whose transformation failed, or whose delivery; null where the message itself was refused.
    pa.field("subscription", pa.string()),
    # Which delivery could not be made: `raw` is its payload; null where it is a message.
    pa.field("delivery", pa.string()),
    # The spot in the message; null where the source could make none: `raw` may then be its beginning only.
    pa.field("position", pa.int64()),
    pa.field("line", pa.int64()),
    pa.field("column", pa.int64()),
    pa.field("raw", pa.binary(), nullable=False),
]

LETTER: pa.Schema = pa.schema(_COLUMNS)
"""A dead letter, as a row."""

_ROWS = 1_000
"""Rows that are read at a time, but for their bytes."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter but for the bytes of its message."""

    tenant: str
    source: str
    id: str
    offset: str
    received: datetime
    encoding: str | None
    code: str
    reason: str
    subscription: str | None
    delivery: str | None
    position: int | None
    line: int | None
    column: int | None
    part: str
    row: int
    """The file that it is in, and where."""

    @property
    def key(self) -> str:
        """What tells it from all others: a message that is refused twice is two letters."""
        return blake2b(f"{self.part}#{self.row}".encode(), digest_size=6).hexdigest()


_READ = [field.name for field in fields(Letter)][:-2]
_NOTHING: dict[str, Any] = dict.fromkeys(_READ)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters are asked for: those that are all of what is given."""

    keys: frozenset[str] = frozenset()
    """Keys of letters, or ids of messages or deliveries."""
    tenant: str | None = None
    source: str | None = None
    code: str | None = None
    since: datetime | None = None

    def has(self, letter: Letter) -> bool:
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
        parts = Parts(self, batch)
        write_parquet(parts, partition, LETTER, rows)
        return parts.finish()

    def letters(self, wanted: Wanted) -> Iterator[Letter]:
        """Letters, the newest first."""
        for publication in self.newest():
            for part in reversed(publication.parts):
                if wanted.tenant in (None, part.tenant):
                    # A batch is held whole, without the bytes of its messages.
                    found = [letter for letter in self._letters(part) if wanted.has(letter)]
                    yield from reversed(found)

    def _letters(self, part: Part) -> Iterator[Letter]:
        with self.place.opened(part.path) as file, pq.ParquetFile(file) as table:
            row = 0
            for batch in table.iter_batches(_ROWS, columns=_READ):
                for values in batch.to_pylist():
                    # A file of an earlier version has fewer columns.
                    yield Letter(**{**_NOTHING, **values}, part=part.path, row=row)
                    row += 1

    def raw(self, letter: Letter) -> bytes:
        """The bytes of a letter's message, as far as they were kept."""
        [(_, raw)] = self.raws([letter])
        return raw

    def raws(self, letters: Iterable[Letter]) -> Iterator[tuple[Letter, bytes]]:
        """Letters with the bytes of their messages; give those of one part together, in its order."""
        for part, group in groupby(letters, key=lambda letter: letter.part):
            yield from self._raws(part, group)

    def _raws(self, part: str, letters: Iterable[Letter]) -> Iterator[tuple[Letter, bytes]]:
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

    def one(self, key: str) -> Letter:
        """The newest letter with a key, or with a message id."""
        for letter in self.letters(Wanted(frozenset([key]))):
            return letter
        raise SinkError("no-letter", f"{self.url} has no letter {key}: see tamis dead-letters list")
