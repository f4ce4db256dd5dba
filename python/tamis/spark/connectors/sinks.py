"""The sinks of a job, in the order in which a batch is written to them."""

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.settings import ConsoleSink, DirectorySink, Settings, TopicSink
from tamis.settings import Sink as Configured
from tamis.sinks.dead_letters import DeadLetters
from tamis.sinks.outbox import Outbox
from tamis.sources.kafka import KafkaSink
from tamis.spark.connectors.console import write_console
from tamis.spark.connectors.dead_letters import write_dead_letters
from tamis.spark.connectors.kafka import sink_options, to_kafka
from tamis.spark.connectors.outbox import can_stage, stage_outbox, write_outbox
from tamis.spark.connectors.publishing import StagedBatch
from tamis.spark.error_causes import root_cause
from tamis.spark.pipeline import Sink, Stage, Write

_ORDER = (DirectorySink, TopicSink, ConsoleSink)
"""Idempotent sinks first, so that a retry after a later failure repeats little; the console last."""


def sinks(settings: Settings) -> Sequence[Sink]:
    """The sinks of the settings: directories, then Kafka, then the console."""
    placed = sorted(settings.sinks, key=lambda sink: _ORDER.index(type(sink)))
    return [Sink(_write(sink), sink.targets, _stage(sink)) for sink in placed]


def dead_letter_writer(settings: Settings) -> Write:
    """The writer of dead letters."""
    letters = DeadLetters(settings.dead_letters)
    return partial(_to_dead_letters, letters)


def sweep(settings: Settings, unfinished: Sequence[Batch]) -> None:
    """Remove files of batches that were never published and will not be run again."""
    for sink in settings.sinks:
        if isinstance(sink, DirectorySink):
            Outbox(sink.path, sink.form).sweep(unfinished)
    DeadLetters(settings.dead_letters).sweep(unfinished)


def _write(sink: Configured) -> Write:
    if isinstance(sink, DirectorySink):
        return partial(_to_outbox, Outbox(sink.path, sink.form))
    if isinstance(sink, ConsoleSink):
        return partial(_to_console, sink.limit)
    return partial(_to_topics, sink.kafka)


def _stage(sink: Configured) -> Stage | None:
    if isinstance(sink, DirectorySink):
        outbox = Outbox(sink.path, sink.form)
        if can_stage(outbox):
            return partial(_stage_outbox, outbox)
    return None


def _stage_outbox(outbox: Outbox, rows: DataFrame, batch: Batch) -> StagedBatch:
    return stage_outbox(rows, outbox, batch)


def _to_dead_letters(letters: DeadLetters, rows: DataFrame, batch: Batch) -> None:
    write_dead_letters(rows, letters, batch)


def _to_outbox(outbox: Outbox, rows: DataFrame, batch: Batch) -> None:
    write_outbox(rows, outbox, batch)


def _to_topics(sink: KafkaSink, rows: DataFrame, batch: Batch) -> None:
    try:
        to_kafka(rows, sink).write.format("kafka").options(**sink_options(sink)).save()
    except Exception as error:
        # Spark has no exception type for errors of Kafka.
        raise root_cause(error, sink.location) from error


def _to_console(limit: int, rows: DataFrame, batch: Batch) -> None:
    write_console(rows, limit)
