"""Publish a DataFrame as a batch of a directory, exactly once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tamis.errors import SinkError
from tamis.model.batch import Batch
from tamis.sinks.published import Part, Publication
from tamis.storage.files import current_umask, set_umask

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
"""The result of a task: a row for each part, or one row with an error."""


class BatchDirectory(Protocol):
    """`Outbox` or `DeadLetters`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def find(self, batch: Batch) -> Publication | None: ...
    def write(self, batch: Batch, partition: int, rows: Iterable[pa.RecordBatch]) -> list[Part]: ...
    def publish(self, batch: Batch, parts: Iterable[Part]) -> Publication: ...
    def discard(self, batch: Batch) -> None: ...


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """The parts of a batch, written and not published; or a batch that was published before."""

    directory: BatchDirectory
    batch: Batch
    parts: tuple[Part, ...]
    written: DataFrame | None
    """The rows whose collection wrote them; None if the batch was published before."""
    published_rows: int = 0

    def publish(self) -> int:
        """Publish it on the driver; the number of rows. `SinkError` if it cannot be; then nothing remains."""
        if not self.parts:
            return self.published_rows
        with _discarded_on_error(self.directory, self.batch):
            return self.directory.publish(self.batch, self.parts).rows

    def discard(self) -> None:
        """Remove the parts, unless they are published."""
        self.directory.discard(self.batch)


def stage(rows: DataFrame, directory: BatchDirectory, batch: Batch) -> StagedBatch:
    """Write rows on the workers, in one Spark job. Does nothing if the batch is published already.

    `SinkError` if they cannot be written; then nothing remains.
    """
    known = directory.find(batch)
    if known is not None and batch.differs_from(known.batch):
        batch = batch.renamed()
        known = directory.find(batch)
    if known is not None:
        return StagedBatch(directory, batch, (), None, known.rows)
    task = _Task(directory, batch, current_umask())
    schema = (
        "path string, tenant string, subscriber string, rows bigint, bytes bigint, code string, reason string"
    )
    written = rows.select(*directory.schema.names).mapInArrow(task.run, schema)
    results = written.collect()
    with _discarded_on_error(directory, batch):
        for row in results:
            if row["code"] is not None:
                raise SinkError(row["code"], row["reason"])
    parts = [
        Part(row["path"], row["tenant"], row["subscriber"], row["rows"], row["bytes"]) for row in results
    ]
    return StagedBatch(directory, batch, tuple(parts), written)


def publish(rows: DataFrame, directory: BatchDirectory, batch: Batch) -> int:
    """Write rows and publish them; the number of rows."""
    return stage(rows, directory, batch).publish()


@contextmanager
def _discarded_on_error(directory: BatchDirectory, batch: Batch) -> Iterator[None]:
    """Free the space of a batch that cannot be published: the disk may be full."""
    try:
        yield
    except SinkError:
        with suppress(SinkError):
            directory.discard(batch)
        raise


@dataclass(frozen=True, slots=True)
class _Task:
    """The work of a task as it is pickled for the workers."""

    directory: BatchDirectory
    batch: Batch
    umask: int

    def run(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of a task. An error is returned as a row, so that Spark does not retry the task."""
        # Workers of a cluster do not inherit it from the job.
        set_umask(self.umask)
        context = TaskContext.get()
        assert context is not None
        schema = self.directory.schema
        shaped = (_as_stored(batch, schema) for batch in rows if batch.num_rows)
        try:
            results = [
                asdict(part) for part in self.directory.write(self.batch, context.partitionId(), shaped)
            ]
        except SinkError as error:
            results = [{"code": error.code, "reason": error.reason}]
        yield pa.RecordBatch.from_pylist(results, schema=_WRITTEN)


def _as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast columns to the stored types: Spark's times have the time zone of its session."""
    columns: list[Any] = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
