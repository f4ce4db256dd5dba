"""A DataFrame → a batch of a directory, exactly once."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tamis.errors import SinkError
from tamis.model.batch import Batch
from tamis.sinks.published import Part, Publication

_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("path", pa.string()),
    pa.field("tenant", pa.string()),
    pa.field("subscriber", pa.string()),
    pa.field("rows", pa.int64()),
    pa.field("bytes", pa.int64()),
    pa.field("code", pa.string()),
    pa.field("reason", pa.string()),
]
_WRITTEN = pa.schema(_COLUMNS)
"""What a task tells of its work: a row for a part, or one for an error."""


class Publishing(Protocol):
    """What rows are published to: `Outbox`, `DeadLetters`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def find(self, batch: Batch) -> Publication | None: ...
    def write(self, batch: Batch, partition: int, rows: Iterable[pa.RecordBatch]) -> list[Part]: ...
    def publish(self, batch: Batch, parts: Iterable[Part]) -> Publication: ...
    def discard(self, batch: Batch) -> None: ...


def publish(rows: DataFrame, directory: Publishing, batch: Batch) -> int:
    """Write rows on the workers, publish them on the driver; how many the batch has. One job of Spark's.

    A batch that is published is left as it is. `SinkError` if it cannot be written: nothing is left then.
    """
    known = directory.find(batch)
    if known is not None and batch.differs_from(known.batch):
        batch = batch.renamed()
        known = directory.find(batch)
    if known is not None:
        return known.rows
    task = _Task(directory, batch)
    schema = (
        "path string, tenant string, subscriber string, rows bigint, bytes bigint, code string, reason string"
    )
    told = rows.select(*directory.schema.names).mapInArrow(task.run, schema).collect()
    try:
        for row in told:
            if row["code"] is not None:
                raise SinkError(row["code"], row["reason"])
        parts = [
            Part(row["path"], row["tenant"], row["subscriber"], row["rows"], row["bytes"]) for row in told
        ]
        return directory.publish(batch, parts).rows if parts else 0
    except SinkError:
        # What was written may be what the disk is full of.
        with suppress(SinkError):
            directory.discard(batch)
        raise


@dataclass(frozen=True, slots=True)
class _Task:
    """The work of a task, as it travels to the workers."""

    directory: Publishing
    batch: Batch

    def run(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of a task; an error is told like a result, so that Spark does not try it thrice."""
        context = TaskContext.get()
        assert context is not None
        schema = self.directory.schema
        shaped = (_shaped(batch, schema) for batch in rows if batch.num_rows)
        try:
            told = [asdict(part) for part in self.directory.write(self.batch, context.partitionId(), shaped)]
        except SinkError as error:
            told = [{"code": error.code, "reason": error.reason}]
        yield pa.RecordBatch.from_pylist(told, schema=_WRITTEN)


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Columns as they are stored: Spark's times are in the time zone of its session."""
    columns: list[Any] = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
