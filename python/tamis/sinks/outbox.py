"""The outbox: deliveries as files, each exactly once; `published.py` explains how."""

from collections.abc import Iterable, Iterator
from io import BufferedReader, RawIOBase
from itertools import islice
from os import PathLike
from typing import Any, Literal, TypeAlias, cast, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import SinkError
from tamis.model.batch import Batch
from tamis.sinks.formats import read_lines, write_lines, write_parquet, write_xml
from tamis.sinks.published import Part, PartWriter, Publication, PublishedDirectory

Form: TypeAlias = Literal["parquet", "jsonl", "xml"]
"""One Parquet file per task, or one file of JSON lines or XML per subscriber."""

_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("message", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("subscription", pa.string(), nullable=False),
    pa.field("revision", pa.int64(), nullable=False),
    pa.field("subscriber", pa.string(), nullable=False),
    pa.field("tenant", pa.string(), nullable=False),
    pa.field("delivery_target", pa.string(), nullable=False),
    pa.field("generation", pa.int64(), nullable=False),
    pa.field("received", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("matched", pa.timestamp("us", "UTC"), nullable=False),
    # The encoding of the payload, if the source fixes it; null: the XML declaration tells.
    pa.field("encoding", pa.string()),
    # The headers of the message: the text of a JSON object. Null without headers.
    pa.field("headers", pa.string()),
    pa.field("payload", pa.binary(), nullable=False),
]

DELIVERY: pa.Schema = pa.schema(_COLUMNS)
"""A delivery, as a row."""

_ROWS = 1_000
"""Rows that are read at a time: payloads can be large."""


class Outbox(PublishedDirectory):
    """Deliveries, published batch by batch."""

    schema = DELIVERY

    def __init__(self, url: str | PathLike[str], form: Form = "parquet") -> None:
        if form not in get_args(Form):
            raise SinkError("bad-form", f"an outbox is written as parquet, jsonl or xml, not as {form!r}")
        super().__init__(url, form)

    def write(self, batch: Batch, partition: int, rows: Iterable[pa.RecordBatch]) -> list[Part]:
        """Write the rows of a task; for JSON lines and XML they come sorted by subscriber."""
        parts = PartWriter(self, batch)
        if self.form == "parquet":
            write_parquet(parts, partition, DELIVERY, rows)
        elif self.form == "jsonl":
            write_lines(parts, rows)
        else:
            write_xml(parts, rows)
        return parts.finish()

    def read(
        self, publication: Publication, *, tenant: str | None = None, subscriber: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The deliveries of a batch: all, or those of a tenant or a subscriber."""
        if publication.form == "xml":
            reason = f"batch {publication.batch} in {self.url} is XML: read its parts as documents"
            raise SinkError("no-rows", reason)
        for part in publication.parts:
            is_other = part.subscriber is not None and subscriber not in (None, part.subscriber)
            if tenant in (None, part.tenant) and not is_other:
                read = self._parquet if publication.form == "parquet" else self._lines
                for batch in read(part):
                    selected = batch
                    if part.subscriber is None and subscriber is not None:
                        selected = batch.filter(pc.equal(batch.column("subscriber"), pa.scalar(subscriber)))
                    if selected.num_rows:
                        yield selected

    def _parquet(self, part: Part) -> Iterator[pa.RecordBatch]:
        with self.place.opened(part.path) as file, pq.ParquetFile(file) as table:
            yield from table.iter_batches(_ROWS)

    def _lines(self, part: Part) -> Iterator[pa.RecordBatch]:
        with self.place.opened(part.path) as file:
            rows = read_lines(BufferedReader(cast("RawIOBase", file)), DELIVERY)
            while some := list(islice(rows, _ROWS)):
                yield pa.RecordBatch.from_pylist(some, schema=DELIVERY)
