"""Runs the plan of a batch once before the first message, which is then processed several times faster.

The first batch would wait for Python workers to start, for the generation to be opened and for Java classes
to be loaded. The plan is run on a synthetic message, whose matches are discarded: no batch, no sink.
"""

import logging
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.spark.envelope import ENVELOPE_TYPE
from tamis.spark.pipeline import Pipeline

log = logging.getLogger(__name__)

NULL = ("code", "reason")
"""The message is one that its source accepted."""


def warm_up(spark: SparkSession, pipeline: Pipeline, generation: int) -> threading.Thread:
    """Start a thread that runs the plan of a source's batches once; returns the thread."""
    thread = threading.Thread(target=_run, args=(spark, pipeline, generation), name="warm-up", daemon=True)
    thread.start()
    return thread


def _run(spark: SparkSession, pipeline: Pipeline, generation: int) -> None:
    try:
        pipeline.rehearse(_messages(spark), generation)
    except Exception as error:
        # A batch will meet the same error, and report it.
        log.debug("warm-up: %s", error)


def _messages(spark: SparkSession) -> DataFrame:
    """An envelope for each core."""
    tasks = spark.sparkContext.defaultParallelism
    values = {"xml": F.lit("<message/>")} | {name: F.lit(None) for name in NULL}
    columns = [
        values.get(field.name, F.lit(0)).cast(field.dataType).alias(field.name) for field in ENVELOPE_TYPE
    ]
    return spark.range(0, tasks, 1, tasks).select(*columns)
