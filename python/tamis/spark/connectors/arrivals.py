"""Arrivals over links as a streaming DataFrame of envelopes; the offset is the number of an arrival."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
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

from tamis.network.arrivals import ArrivedMessages
from tamis.sources.arrivals import ArrivalsSource
from tamis.spark.envelope import ENVELOPE_TYPE

FORMAT = "tamis-arrivals"


def read_arrivals(spark: SparkSession, source: ArrivalsSource) -> DataFrame:
    """A streaming DataFrame of the messages that arrive over links."""
    spark.dataSource.register(ArrivalsDataSource)
    return spark.readStream.format(FORMAT).option("source", json.dumps(source.to_json())).load()


class ArrivalsDataSource(DataSource):
    """The Spark data source; option `source`: an `ArrivalsSource` as JSON."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return ENVELOPE_TYPE

    def streamReader(self, schema: StructType) -> "ArrivalsReader":  # noqa: N802 - Spark's name
        return ArrivalsReader(json.loads(self.options["source"]))


class _Task(InputPartition):
    def __init__(self, arrival: int) -> None:
        super().__init__(arrival)
        self.arrival = arrival


class ArrivalsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver, and reads the messages of an arrival in each task."""

    def __init__(self, source: dict[str, Any]) -> None:
        self._source = source
        self._opened: ArrivedMessages | None = None
        self._only_now = False
        self._last: int | None = None
        """Where a query with the trigger AvailableNow ends."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the open journal: each process opens its own."""
        return {**vars(self), "_opened": None}

    @property
    def _arrived(self) -> ArrivedMessages:
        if self._opened is None:
            self._opened = ArrivedMessages(Path(self._source["path"]))
        return self._opened

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return _offset(0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._source["max_bytes"])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._only_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        end = self._arrived.next() if self._last is None else self._last
        if self._only_now:
            self._last = end
        if isinstance(limit, ReadAllAvailable):
            return _offset(max(end, start["arrival"]))
        most = self._source["max_messages"], self._source["max_bytes"]
        return _offset(min(self._arrived.until(start["arrival"], *most), max(end, start["arrival"])))

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return _offset(self._arrived.next())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [_Task(number) for number in range(start["arrival"], end["arrival"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Task)
        yield from self._arrived.read(partition.arrival).to_batches()

    def commit(self, end: dict[str, Any]) -> None:
        self._arrived.remove(end["arrival"])


def _offset(arrival: int) -> dict[str, int]:
    return {"arrival": arrival}
