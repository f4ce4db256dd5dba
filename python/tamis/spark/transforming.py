"""Transform a DataFrame of messages: a row per match, with its payload."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField

from tamis.engine import Index
from tamis.model.matching import Generation, Limits
from tamis.schema import Schema
from tamis.spark.frames import (
    MATCH_COLUMNS,
    OUTPUTS,
    RESULT,
    columns_to_keep,
    prepare,
    quoted,
    refuse_name_clash,
)

_DEFAULT_LIMITS = Limits()


def transform(
    df: DataFrame,
    index: Index | Generation,
    *,
    message: str = "message",
    keep: Sequence[str] | None = None,
    tenant: str = "",
    tenant_column: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    envelope: str | None = None,
    schema: Schema | None = None,
) -> DataFrame:
    """One row for each message and each target whose query matches it, with the payload for the target.

    Rows have the kept columns, `target`, `payload` and `error`. The payload is the output of a
    transformation, or for a filter the message itself. If the transformation failed, it is null, and `error`
    gives the reason. A malformed message has one row with an error and no target. For the other options see
    `with_matches`.

    Args:
        schema: The DTD that messages should conform to; others are transformed as well, only slower.
    """
    kept = columns_to_keep(df, message, keep)
    refuse_name_clash(kept, ["target", "payload", "error"])
    # The message comes back once per message: it is the payload of filters.
    carried = kept if message in kept else [*kept, message]
    sent = prepare(
        df,
        index.saved if isinstance(index, Index) else index,
        message=message,
        keep=carried,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        envelope=envelope,
        transforms=True,
        schema=schema,
    )
    made = StructField("made", ArrayType(RESULT, containsNull=False), nullable=False)
    rows = sent.map_batches(sent.step.run, [*MATCH_COLUMNS, made, OUTPUTS])
    (itself,) = quoted([message])
    wanted = "inline_outer(arrays_zip(targets, made)) AS (target, made)"
    exploded = rows.where("size(targets) > 0 OR error IS NOT NULL").selectExpr(
        *quoted(carried), "outputs", wanted, "error"
    )
    payload = (
        f"CASE WHEN made.output IS NOT NULL THEN element_at(outputs, made.output) "
        f"WHEN target IS NOT NULL AND made.code IS NULL THEN CAST({itself} AS BINARY) END AS payload"
    )
    failure = (
        "CASE WHEN made.code IS NULL THEN error ELSE named_struct('code', made.code, 'reason', made.reason, "
        "'offset', CAST(NULL AS BIGINT), 'line', CAST(NULL AS BIGINT), 'column', CAST(NULL AS BIGINT), "
        "'value', CAST(NULL AS BIGINT), 'limit', CAST(NULL AS BIGINT)) END AS error"
    )
    return exploded.selectExpr(*quoted(kept), "target", payload, failure)
