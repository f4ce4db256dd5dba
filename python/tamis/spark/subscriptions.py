"""Matching a DataFrame of messages against the subscriptions of a catalog: who wants each message?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tamis.errors import FrameError
from tamis.model.matching import Generation, Limits
from tamis.spark.frames import ERROR, prepared, quoted
from tamis.spark.worker.generations import opened
from tamis.spark.worker.sizes import list_ends, short_lists
from tamis.spark.worker.task import Matching

WANTED = StructType(
    [
        StructField("subscription", StringType(), nullable=False),
        StructField("revision", LongType(), nullable=False),
        StructField("subscriber", StringType(), nullable=False),
        StructField("delivery_target", StringType(), nullable=False),
    ]
)
"""A subscription that wants the message."""

WANTED_BY = StructField("wanted", ArrayType(WANTED, containsNull=False), nullable=False)

_DEFAULT_LIMITS = Limits()


def match_subscriptions(
    df: DataFrame,
    generation: Generation,
    *,
    message: str = "message",
    keep: Sequence[str] | None = None,
    tenant: str = "",
    tenant_column: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> DataFrame:
    """One row for each message and each subscription that wants it; one row for a malformed message.

    `generation` is one of a store, made from a catalog: `Generation(url, number, stored=True)`. Rows have the
    columns to keep, `subscription`, `revision`, `subscriber`, `delivery_target` and `error`. For the options
    see `with_matches`.
    """
    if not generation.stored:
        reason = f"{generation.directory} is a snapshot, which knows targets only: use match, or name a store"
        raise FrameError("no-subscriptions", reason)
    sent = prepared(
        df,
        generation,
        message=message,
        keep=keep,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
    )
    added = [WANTED_BY, StructField("candidates", LongType(), nullable=False), StructField("error", ERROR)]
    found = sent.through(_LookingUp(sent.step).run, added)
    kept = quoted([field.name for field in sent.kept])
    rows = f"inline_outer(wanted) AS ({', '.join(WANTED.names)})"
    return found.where("size(wanted) > 0 OR error IS NOT NULL").selectExpr(*kept, rows, "error")


@dataclass(frozen=True, slots=True)
class _LookingUp:
    """The step, as it travels to the workers."""

    step: Matching

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        return looked_up(self.step.generation, self.step.run(batches))


def looked_up(generation: Generation, matched: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Matched messages with the subscriptions that want them, `wanted`, in place of `targets`."""
    subscriptions = opened(generation).subscriptions
    for batch in matched:
        targets: Any = batch.column("targets")
        known = subscriptions.look_up(targets.flatten().view(pa.uint64()))
        columns: list[Any] = [
            known.column("id").cast(pa.string()),
            known.column("revision").cast(pa.int64()),
            known.column("subscriber").cast(pa.string()),
            known.column("delivery_target").cast(pa.string()),
        ]
        wanted = pa.StructArray.from_arrays(columns, WANTED.names)
        place = batch.schema.get_field_index("targets")
        yield batch.set_column(place, WANTED_BY.name, short_lists(list_ends(targets), wanted))
