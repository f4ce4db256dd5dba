"""Match a DataFrame of messages against the subscriptions of a catalog: a row per matching subscription."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tamis.errors import FrameError
from tamis.model.matching import Generation, Limits
from tamis.spark.frames import MATCH_RESULT, prepare, quoted
from tamis.spark.worker.generations import opened
from tamis.spark.worker.offsets import lists_of, offsets_of
from tamis.spark.worker.routes import split_routes
from tamis.spark.worker.task import MatchTask

RECIPIENT = StructType(
    [
        StructField("subscription", StringType(), nullable=False),
        StructField("revision", LongType(), nullable=False),
        StructField("subscriber", StringType(), nullable=False),
        StructField("delivery_target", StringType(), nullable=False),
    ]
)
"""A subscription that matches the message."""

RECIPIENTS = StructField("matched_subscriptions", ArrayType(RECIPIENT, containsNull=False), nullable=False)

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
    envelope: str | None = None,
) -> DataFrame:
    """One row for each message and each subscription that it matches; one row for a malformed message.

    `generation` is one of a store: `Generation(url, number, stored=True)`. Rows have the kept columns,
    `subscription`, `revision`, `subscriber`, `delivery_target` and `error`. For the options
    see `with_matches`.
    """
    if not generation.stored:
        reason = f"{generation.directory} is a snapshot without subscriptions: use match, or name a store"
        raise FrameError("no-subscriptions", reason)
    sent = prepare(
        df,
        generation,
        message=message,
        keep=keep,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        envelope=envelope,
    )
    found = sent.map_batches(_MatchSubscriptions(sent.step).run, [RECIPIENTS, *MATCH_RESULT])
    kept = quoted([field.name for field in sent.kept])
    rows = f"inline_outer(matched_subscriptions) AS ({', '.join(RECIPIENT.names)})"
    return found.where("size(matched_subscriptions) > 0 OR error IS NOT NULL").selectExpr(
        *kept, rows, "error"
    )


@dataclass(frozen=True, slots=True)
class _MatchSubscriptions:
    """The step as it is pickled for the workers."""

    step: MatchTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        matched = with_recipients(self.step.generation, self.step.run(batches))
        return (split_routes(batch, RECIPIENTS.name)[0] for batch in matched)


def with_recipients(generation: Generation, matched: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replace `targets` by `matched_subscriptions`: the subscriptions and routes with these numbers."""
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
        recipients = pa.StructArray.from_arrays(columns, RECIPIENT.names)
        place = batch.schema.get_field_index("targets")
        yield batch.set_column(place, RECIPIENTS.name, lists_of(offsets_of(targets), recipients))


def recipients_of_targets(found: DataFrame, kept: Sequence[str], generation: Generation) -> DataFrame:
    """Rows of `match` → rows of `match_subscriptions`: the subscription in place of its number."""
    if not generation.stored:
        reason = f"{generation.directory} is a snapshot without subscriptions: use match, or name a store"
        raise FrameError("no-subscriptions", reason)
    names = [f"c{number}" for number in range(len(kept))]
    renamed = [f"{name} AS {new}" for name, new in zip(quoted(kept), names, strict=True)]
    targets = "if(target IS NULL, CAST(array() AS array<bigint>), array(target)) AS targets"
    sent = found.selectExpr(*renamed, targets, "error")
    columns = [StructField(new, found.schema[old].dataType) for old, new in zip(kept, names, strict=True)]
    schema = StructType([*columns, RECIPIENTS, found.schema["error"]])
    rows = sent.mapInArrow(_Recipients(generation).run, schema)
    back = [f"{new} AS {old}" for new, old in zip(names, quoted(kept), strict=True)]
    expanded = f"inline_outer(matched_subscriptions) AS ({', '.join(RECIPIENT.names)})"
    return rows.selectExpr(*back, expanded, "error")


@dataclass(frozen=True, slots=True)
class _Recipients:
    """The step as it is pickled for the workers."""

    generation: Generation

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        matched = with_recipients(self.generation, (batch for batch in batches if batch.num_rows))
        return (split_routes(batch, RECIPIENTS.name)[0] for batch in matched)
