"""The counts of a batch, whether an id occurs twice in it, and its sample: taken by its first job.

A job of its own for the counts would take as long as the rest of a small batch.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.model.envelope_value import Envelope
from tamis.model.headers import unpack_headers
from tamis.model.sample import Sampled
from tamis.pipeline.batch_log import Counts
from tamis.spark.deliveries import REFUSED
from tamis.spark.worker.task import WORK

_NAME = "counts"
_EPOCH = datetime.fromtimestamp(0, UTC)
_SAMPLE = "rank, tenant, base64(xml) AS message, source, topic, unix_micros(received) AS received, headers"
_SAMPLED = f"collect_list(CASE WHEN rank IS NOT NULL THEN struct({_SAMPLE}) END)"
_FAILED = "size(filter(matched_subscriptions, one -> one.code IS NOT NULL))"
_COUNTS = {
    "read": "count(1)",
    "matched": "count_if(size(matched_subscriptions) > 0)",
    "dead": f"count_if({REFUSED})",
    "deliveries": f"sum(size(matched_subscriptions) - {_FAILED})",
    "failed": f"sum({_FAILED})",
    "candidates": "sum(candidates)",
    "skipped_entities": "sum(skipped_entities)",
    **{name: f"sum(work.{name})" for name in WORK},
    # Of the worker that has most: workers take turns, so a sum would count one several times.
    "cache_bytes": "max(work.cache_bytes)",
    "subscription_bytes": "max(subscription_bytes)",
    # A set of hashes needs no shuffle, as a distinct count would.
    "ids": f"size(collect_set(CASE WHEN NOT ({REFUSED}) THEN xxhash64(source, id) END))",
}


class Counted(NamedTuple):
    """What was observed of a batch."""

    counts: Counts
    has_duplicates: bool
    sampled: list[Sampled]


def observed(matched: DataFrame) -> DataFrame:
    """The same rows, which are counted when a job reads them."""
    # In SQL, whole: each operator in Python would be a call into the JVM.
    columns = [F.expr(f"coalesce({sql}, 0L) AS {name}") for name, sql in _COUNTS.items()]
    return matched.observe(_NAME, *columns, F.expr(f"{_SAMPLED} AS sampled"))


def counts_of(done: DataFrame) -> Counted:
    """What was counted when these rows, made of observed ones, were collected.

    Exact if no shuffle comes between them: Spark counts a task once, unless another stage reads its result.
    """
    plan: Any = done._jdf.queryExecution()
    # PySpark's `Observation` waits for an event, and for ever if none comes.
    values = json.loads(plan.observedMetrics().apply(_NAME).json())
    ids, sampled = values.pop("ids"), values.pop("sampled")
    messages = [_sampled(one) for one in sampled]
    return Counted(Counts(**values), ids < values["read"] - values["dead"], messages)


def _sampled(row: Mapping[str, Any]) -> Sampled:
    """A message of the sample; the JSON of a metric leaves out nulls."""
    received = row.get("received")
    time = None if received is None else _EPOCH + timedelta(microseconds=received)
    envelope = Envelope(row.get("source"), row.get("topic"), time, unpack_headers(row.get("headers")))
    return Sampled(row["rank"], row["tenant"], b64decode(row["message"]), envelope)


def count(matched: DataFrame) -> Counted:
    """Count in a job that does nothing else."""
    rows = observed(matched).mapInArrow(_drop, "read bigint")
    rows.collect()
    return counts_of(rows)


def _drop(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in rows:
        yield pa.RecordBatch.from_pydict({"read": pa.array([], pa.int64())})
