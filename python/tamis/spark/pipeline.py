"""The message flow of one source: one batch, from envelopes to sinks.

    envelopes → match and transform → count, and write the first sink's deliveries → publish to links
    → write dead letters → publish and write deliveries → mark the batch as done

All up to the counts is one Spark job if the first sink can publish later what it writes, as an outbox can. A
batch can be run again: its generation and time are logged before the work, and each sink either ignores a
batch that it has, or writes deliveries with stable ids for de-duplication.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.model.matching import Generation
from tamis.pipeline.batch_log import BatchLog, BatchRecord, Counts
from tamis.pipeline.sample import MessageSample
from tamis.schema import Schema
from tamis.settings import Input
from tamis.spark.counting import Counted, count, counts_of, observed
from tamis.spark.deliveries import dead_letters, deliveries, refuse_duplicates
from tamis.spark.match_and_transform import match_and_transform

Write = Callable[[DataFrame, Batch], None]
"""Writes the rows of a batch to a sink."""


class Staged(Protocol):
    """The deliveries of a batch, written and not published."""

    @property
    def written(self) -> DataFrame | None:
        """The rows whose collection wrote them; None if they were published before."""

    def publish(self) -> object: ...
    def discard(self) -> None: ...


Stage = Callable[[DataFrame, Batch], Staged]
"""Writes the rows of a batch to a sink that publishes them later."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink of deliveries."""

    write: Write
    targets: tuple[str, ...] | None
    """Only deliveries with these delivery targets; all if None."""
    stage: Stage | None = None
    """The first half of `write`, if that can be halved without a shuffle."""

    def select(self, rows: DataFrame) -> DataFrame:
        """The deliveries for this sink."""
        return rows if self.targets is None else rows.where(rows["delivery_target"].isin(*self.targets))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Processes the batches of one source."""

    source: Input
    generation: Callable[[int], Generation]
    """A generation by its number, as a reference for workers."""
    newest: Callable[[], int]
    """Publishes the current catalog if it changed; the number of the newest generation."""
    sinks: Sequence[Sink]
    """In this order."""
    write_dead_letters: Write
    publish_parcels: Write | None = None
    """Publishes the messages to the links of the broker."""
    schema: Schema | None = None
    """The DTD that the source's messages should conform to."""
    sample: MessageSample | None = None
    """The sample of messages of the job; None if there is none."""

    def run(
        self, envelopes: DataFrame, number: int, plan: str, batches: BatchLog
    ) -> tuple[BatchRecord, Counts]:
        """Process one batch; does nothing if it is done already."""
        record = batches.begin(number, self.newest, plan)
        if record.counts is not None:
            return record, record.counts
        batch = batches.batch_id(number)
        matched = self._matched(envelopes, record.generation, record.time)
        with ExitStack() as stack:
            # Computed once for all sinks.
            matched = _persisted(matched, stack)
            (counts, has_duplicates, sampled), staged = self._count(matched, batch)
            if has_duplicates:
                if staged is not None:
                    staged.discard()
                matched = _persisted(refuse_duplicates(matched), stack)
                (counts, _, sampled), staged = count(matched), None
            if self.sample is not None:
                self.sample.add(record.time, sampled)
            # Before all that concerns this broker only: others wait for it.
            if self.publish_parcels is not None and counts.read > counts.dead:
                self.publish_parcels(matched, batch)
            if counts.dead or counts.failed:
                self.write_dead_letters(dead_letters(matched), batch)
            if staged is not None:
                staged.publish()
            if counts.deliveries:
                for sink in self.sinks if staged is None else self.sinks[1:]:
                    sink.write(sink.select(deliveries(matched)), batch)
        batches.finish(number, counts)
        return record, counts

    def rehearse(self, envelopes: DataFrame, generation: int) -> None:
        """The same plans for a batch that does not exist: nothing is recorded and nothing written."""
        matched = self._matched(envelopes, generation, datetime.now(UTC))
        with ExitStack() as stack:
            rows = deliveries(observed(_persisted(matched, stack))).mapInArrow(_drop, "id string")
            rows.collect()
            counts_of(rows)

    def _matched(self, envelopes: DataFrame, generation: int, begun: datetime) -> DataFrame:
        reference, source = self.generation(generation), self.source
        sampling = None if self.sample is None else self.sample.sampling(begun)
        return match_and_transform(
            envelopes, reference, begun, source.tenant, source.limits, self.schema, sampling
        )

    def _count(self, matched: DataFrame, batch: Batch) -> tuple[Counted, Staged | None]:
        """What was counted, and what the first sink wrote, if in the same job."""
        for sink in self.sinks[:1]:
            if sink.stage is not None:
                staged = sink.stage(sink.select(deliveries(observed(matched))), batch)
                if staged.written is not None:
                    return counts_of(staged.written), staged
        return count(matched), None


def _drop(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A sink that writes nothing."""
    return (batch.slice(0, 0).select(["id"]) for batch in rows)


def _persisted(rows: DataFrame, stack: ExitStack) -> DataFrame:
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    stack.callback(kept.unpersist)
    return kept
