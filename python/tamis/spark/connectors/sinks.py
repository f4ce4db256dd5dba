"""The sinks of a job, in the order in which they get a batch."""

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
from tamis.spark.connectors.dead_letters import bury
from tamis.spark.connectors.kafka import sink_options, to_kafka
from tamis.spark.connectors.outbox import write_outbox
from tamis.spark.error_causes import clear
from tamis.spark.pipeline import Sink, Write

_ORDER = (DirectorySink, TopicSink, ConsoleSink)
"""What knows a batch again comes first; what people only look at comes last, and tells of what is done."""


def sinks(settings: Settings) -> Sequence[Sink]:
    """Those of the settings, directories before Kafka before the console."""
    placed = sorted(settings.sinks, key=lambda sink: _ORDER.index(type(sink)))
    return [Sink(_write(sink), sink.targets) for sink in placed]


def burial(settings: Settings) -> Write:
    """What is done with dead letters."""
    letters = DeadLetters(settings.dead_letters)
    return partial(_to_letters, letters)


def sweep(settings: Settings, unfinished: Sequence[Batch]) -> None:
    """Remove what batches left behind that will not be run again."""
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


def _to_letters(letters: DeadLetters, rows: DataFrame, batch: Batch) -> None:
    bury(rows, letters, batch)


def _to_outbox(outbox: Outbox, rows: DataFrame, batch: Batch) -> None:
    write_outbox(rows, outbox, batch)


def _to_topics(sink: KafkaSink, rows: DataFrame, batch: Batch) -> None:
    try:
        to_kafka(rows, sink).write.format("kafka").options(**sink_options(sink)).save()
    except Exception as error:
        # Spark has no type for what Java says of Kafka.
        raise clear(error, sink.location) from error


def _to_console(limit: int, rows: DataFrame, batch: Batch) -> None:
    write_console(rows, limit)
