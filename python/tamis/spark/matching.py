"""Matching a DataFrame of messages."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField

from tamis.engine import Index
from tamis.model.matching import Generation, Limits
from tamis.spark.frames import ADDED, ELEMENT, prepared, quoted, refuse_taken, to_keep

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
    elements: int = 0,
) -> DataFrame:
    """One row for each message and each target whose query matches it; one row for a malformed message.

    Rows have the columns to keep, `target`, `error` and, if asked for, `elements`. A message that matches
    nothing has no row; a malformed one has no target, and `error` says why. For the options see
    `with_matches`.
    """
    kept = to_keep(df, message, keep)
    refuse_taken(kept, ["target"])
    rows = with_matches(
        df,
        index,
        message=message,
        keep=kept,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        elements=elements,
    )
    # Arrays cross from Python, a number a match, and become rows on Spark's side: what is kept, and the
    # error that a good message does not have, would else cross once for every match. SQL's words are
    # the same for classic and Connect.
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
    elements: int = 0,
) -> DataFrame:
    """One row for each message, with the targets whose queries match it.

    The columns are those to keep, and
    - `targets`, ascending: the 64 bits of each as Spark's `bigint`, so that those from 2⁶³ on are negative;
    - `candidates`: how many queries had to be looked at;
    - `error`: null, or why the message was refused: `code`, `reason`, `offset` in bytes from 0, `line` and
      `column` from 1, and for a limit `value` and `limit`. It has no targets then;
    - `elements`, if asked for: for each of the targets, the nodes that its query selects.

    Args:
        df: Batch or streaming.
        index: An index that has a snapshot, or a generation by its place.
        message: The column with the messages, of type string or binary.
        keep: Columns to keep; unless given, all but the message, which is large and goes one way then.
        tenant: Whose queries to match.
        tenant_column: The column that says so for each message, instead; a null there is an error.
        limits: What a message may cost.
        elements: At most so many nodes for one message and query come along.
    """
    added = [*ADDED]
    if elements:
        nodes = ArrayType(ArrayType(ELEMENT, containsNull=False), containsNull=False)
        added.append(StructField("elements", nodes, nullable=False))
    sent = prepared(
        df,
        index.saved if isinstance(index, Index) else index,
        message=message,
        keep=keep,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        elements=elements,
    )
    return sent.through(sent.step.run, added)
