"""The message flow of one source, whole: what becomes of a batch.

    read → sift (match, transform, look up who wants it) → count → bury the dead → deliver → note it as done

Everything here can be run again: the generation and the time are written down before the work, and each
sink knows a batch that it has seen, or gives deliveries ids to know them by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tamis.engine import Schema
from tamis.model.batch import Batch
from tamis.model.matching import Generation
from tamis.pipeline.batch_log import BatchLog, BatchRecord, Counts
from tamis.settings import Source
from tamis.spark.deliveries import count, dead_letters, deliveries
from tamis.spark.match_and_transform import sift

Write = Callable[[DataFrame, Batch], None]
"""What a sink does with the rows of a batch."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where deliveries go."""

    write: Write
    targets: tuple[str, ...] | None
    """Only deliveries with these delivery targets; all if None."""

    def of(self, rows: DataFrame) -> DataFrame:
        """The deliveries that are the sink's."""
        return rows if self.targets is None else rows.where(rows["delivery_target"].isin(*self.targets))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a source's batches go through."""

    source: Source
    generation: Callable[[int], Generation]
    """A generation by its number, as workers find it."""
    newest: Callable[[], int]
    """The number of the generation that shows the catalog as it is."""
    sinks: Sequence[Sink]
    """In this order."""
    bury: Write
    schema: Schema | None = None
    """What the source's messages are expected to conform to."""

    def run(
        self, envelopes: DataFrame, number: int, plan: str, batches: BatchLog
    ) -> tuple[BatchRecord, Counts]:
        """One batch."""
        record = batches.begin(number, self.newest, plan)
        if record.counts is not None:
            return record, record.counts
        batch = batches.batch_id(number)
        generation = self.generation(record.generation)
        source = self.source
        sifted = sift(envelopes, generation, record.time, source.tenant, source.limits, self.schema)
        # Computed once, however many sinks there are.
        sifted = sifted.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            counts = count(sifted)
            if counts.dead or counts.failed:
                self.bury(dead_letters(sifted), batch)
            if counts.deliveries:
                for sink in self.sinks:
                    sink.write(sink.of(deliveries(sifted)), batch)
        finally:
            sifted.unpersist()
        batches.finish(number, counts)
        return record, counts
