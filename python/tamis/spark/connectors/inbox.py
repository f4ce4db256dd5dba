"""An inbox directory as a streaming DataFrame of envelopes."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tamis.sources.directory import DirectorySource, FileSlice, Inbox, Offset
from tamis.sources.envelopes import read_envelopes
from tamis.spark.envelope import ENVELOPE_TYPE

FORMAT = "tamis-inbox"


def read_inbox(spark: SparkSession, source: DirectorySource, *, tasks: int | None = None) -> DataFrame:
    """A streaming DataFrame of an inbox's messages; `tasks` per batch, by default one per core."""
    spark.dataSource.register(InboxDataSource)
    count = spark.sparkContext.defaultParallelism if tasks is None else tasks
    reader = spark.readStream.format(FORMAT).option("source", json.dumps(source.to_json()))
    return reader.option("tasks", str(count)).load()


class InboxDataSource(DataSource):
    """The Spark data source; options: `source`, a `DirectorySource` as JSON, and `tasks`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return ENVELOPE_TYPE

    def streamReader(self, schema: StructType) -> "InboxReader":  # noqa: N802 - Spark's name
        source = DirectorySource.from_json(json.loads(self.options["source"]))
        return InboxReader(source, int(self.options["tasks"]))


class _Task(InputPartition):
    def __init__(self, slices: list[FileSlice]) -> None:
        super().__init__(slices)
        self.slices = slices


class InboxReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver, and reads messages on the workers."""

    def __init__(self, source: DirectorySource, tasks: int) -> None:
        self._source = source
        self._tasks = tasks
        self._opened: Inbox | None = None
        self._only_now = False
        self._last: Offset | None = None
        """Where a query with the trigger AvailableNow ends."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the open inbox: only the driver uses that."""
        return {**vars(self), "_opened": None}

    @property
    def _inbox(self) -> Inbox:
        """Opened on first use: Spark creates readers on workers too."""
        if self._opened is None:
            self._opened = Inbox(self._source, self._tasks)
        return self._opened

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._inbox.first_offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._source.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        # The start offset is not known yet, and without it no file may be numbered.
        self._only_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        offset = Offset.from_json(start)
        end = self._last or self._inbox.list_files(offset)
        if self._only_now:
            self._last = end
        if isinstance(limit, ReadAllAvailable):
            return self._inbox.advance_fully(offset, end).to_json()
        return self._inbox.advance(offset, end).to_json()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        # Spark calls this right after `latestOffset`, which has listed the files.
        return self._inbox.latest_offset().to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        tasks = self._inbox.slices(Offset.from_json(start), Offset.from_json(end))
        return [_Task(slices) for slices in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Task)
        return read_envelopes(self._source, partition.slices)

    def commit(self, end: dict[str, Any]) -> None:
        self._inbox.commit(Offset.from_json(end))

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
