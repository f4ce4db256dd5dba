"""Match a DataFrame of messages: `match` (a row per match) and `with_matches` (a row per message)."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField

from tamis.engine import Index
from tamis.model.matching import Generation, Limits
from tamis.spark.frames import ELEMENT, MATCH_COLUMNS, columns_to_keep, prepare, quoted, refuse_name_clash

_DEFAULT_LIMITS = Limits()


def match(
    df: DataFrame,
    index: Index | Generation,
    *,
    message: str = "message",
    keep: Sequence[str] | None = None,
    tenant: str = "",
    tenant_column: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    envelope: str | None = None,
    elements: int = 0,
) -> DataFrame:
    """One row for each message and each target whose query matches it; one row for a malformed message.

    Rows have the kept columns, `target`, `error` and, on request, `elements`. A message without matches has
    no row; a malformed one has no target, and `error` gives the reason. For the options see `with_matches`.
    """
    kept = columns_to_keep(df, message, keep)
    refuse_name_clash(kept, ["target"])
    rows = with_matches(
        df,
        index,
        message=message,
        keep=kept,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        envelope=envelope,
        elements=elements,
    )
    # Workers return arrays, and Spark explodes them: otherwise the kept columns would cross from Python once
    # per match. SQL works the same in classic Spark and Connect.
    if elements:
        targets = "inline_outer(arrays_zip(targets, elements)) AS (target, elements)"
    else:
        targets = "explode_outer(targets) AS target"
    return rows.where("size(targets) > 0 OR error IS NOT NULL").selectExpr(*quoted(kept), targets, "error")


def with_matches(
    df: DataFrame,
    index: Index | Generation,
    *,
    message: str = "message",
    keep: Sequence[str] | None = None,
    tenant: str = "",
    tenant_column: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    envelope: str | None = None,
    elements: int = 0,
) -> DataFrame:
    """One row for each message, with the targets whose queries match it.

    The columns are the kept ones, and
    - `targets`, ascending: the 64 bits of each as Spark's `bigint`, so that those from 2⁶³ on are negative;
    - `candidates`: how many queries were candidates;
    - `work`: how many of them were `settled` and `verified`, in so many `steps` with elements `looked_up` by
      value so often; whether the message was `uncached`; `cache_bytes`: the caches of the worker;
    - `failed`: how many queries exceeded the work limit, so that it is not known whether they match;
    - `skipped_entities`: how many references were left out (`Limits.skip_unread_entities`);
    - `error`: null, or why the message was refused: `code`, `reason`, `offset` in bytes from 0, `line` and
      `column` from 1, and for a limit `value` and `limit`. It has no targets then;
    - `elements`, on request: for each of the targets, the nodes that its query selects.

    Args:
        df: Batch or streaming.
        index: An index with a snapshot, or a reference to a generation.
        message: The column with the messages, of type string or binary.
        keep: Columns to keep; by default all except the message: it is large, and need not come back.
        tenant: Whose queries to match.
        tenant_column: Instead, a column with the tenant of each message; a null is an error.
        limits: Limits for each message.
        envelope: A column with the envelope of each message, for queries with `$envelope`: a struct with
            any of the fields `source`, `topic`, `received` and `headers`, a map.
        elements: The most nodes per message and query; 0 for none.
    """
    added = [*MATCH_COLUMNS]
    if elements:
        nodes = ArrayType(ArrayType(ELEMENT, containsNull=False), containsNull=False)
        added.append(StructField("elements", nodes, nullable=False))
    sent = prepare(
        df,
        index.saved if isinstance(index, Index) else index,
        message=message,
        keep=keep,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        envelope=envelope,
        elements=elements,
    )
    return sent.map_batches(sent.step.run, added)
