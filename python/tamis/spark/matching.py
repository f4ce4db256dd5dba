"""Matching a DataFrame of messages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from tamis.engine import Index
from tamis.errors import FrameError
from tamis.model import Generation, Limits
from tamis.spark.worker import Matching

TARGETS = ArrayType(LongType(), containsNull=False)

ERROR = StructType(
    [
        StructField("code", StringType(), nullable=False),
        StructField("reason", StringType(), nullable=False),
        *(StructField(name, LongType()) for name in ("offset", "line", "column", "value", "limit")),
    ]
)
"""Why a message was refused: as `tamis.ReadError` says it."""

ELEMENT = StructType(
    [
        StructField("node", IntegerType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        *(StructField(name, IntegerType()) for name in ("attribute", "span_start", "span_end")),
    ]
)
"""A node that a query selects: as `Index.match_elements` says it."""

Run: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a worker does with the batches of a task."""

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
    kept = _kept(df, message, keep)
    _refuse_taken(kept, ["target"])
    matched = with_matches(
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
        rows = "inline_outer(arrays_zip(targets, elements)) AS (target, elements)"
    else:
        rows = "explode_outer(targets) AS target"
    return matched.where("size(targets) > 0 OR error IS NOT NULL").selectExpr(*quoted(kept), rows, "error")


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
    added = [
        StructField("targets", TARGETS, nullable=False),
        StructField("candidates", LongType(), nullable=False),
        StructField("error", ERROR),
    ]
    if elements:
        nodes = ArrayType(ArrayType(ELEMENT, containsNull=False), containsNull=False)
        added.append(StructField("elements", nodes, nullable=False))
    generation = index.saved if isinstance(index, Index) else index
    sent = prepared(df, generation, message, keep, tenant, tenant_column, limits, elements)
    return sent.through(sent.step.run, added)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Messages as they are sent to the workers, and the step that matches them there."""

    rows: DataFrame
    step: Matching
    kept: Sequence[StructField]

    def through(self, run: Run, added: Sequence[StructField]) -> DataFrame:
        """What workers make of them: the columns to keep, and those that are added."""
        _refuse_taken([field.name for field in self.kept], [field.name for field in added])
        return self.rows.mapInArrow(run, StructType([*self.kept, *added]))


def prepared(
    df: DataFrame,
    generation: Generation,
    message: str,
    keep: Sequence[str] | None,
    tenant: str,
    tenant_column: str | None,
    limits: Limits,
    elements: int,
) -> Prepared:
    """Check what was asked for; for the options see `with_matches`."""
    _require(df, [message, *([] if tenant_column is None else [tenant_column])])
    _require_type(df, message, (StringType, BinaryType, CharType, VarcharType))
    if tenant_column is not None:
        if tenant:
            raise FrameError("two-tenants", "give a tenant or a column of tenants, not both")
        _require_type(df, tenant_column, (StringType, CharType, VarcharType))
    kept = _kept(df, message, keep)
    sent = list(dict.fromkeys([*kept, message, *([] if tenant_column is None else [tenant_column])]))
    step = Matching(
        generation=generation,
        message=sent.index(message),
        kept=len(kept),
        tenant=tenant,
        tenant_column=None if tenant_column is None else sent.index(tenant_column),
        limits=limits,
        elements=elements,
    )
    # Plain names on the way: mapInArrow looks columns up by name, and takes a dot for a way into a structure.
    plain = [f"{name} AS c{place}" for place, name in enumerate(quoted(sent))]
    return Prepared(df.selectExpr(*plain), step, [df.schema[name] for name in kept])


def _kept(df: DataFrame, message: str, keep: Sequence[str] | None) -> list[str]:
    if keep is None:
        kept = [name for name in df.columns if name != message]
    else:
        kept = [keep] if isinstance(keep, str) else list(dict.fromkeys(keep))
    _require(df, kept)
    return kept


def _require(df: DataFrame, names: Sequence[str]) -> None:
    for name in names:
        if df.columns.count(name) != 1:
            found = "two such" if name in df.columns else f"only {', '.join(df.columns)}"
            raise FrameError("no-column", f"one column {name!r} is needed; the DataFrame has {found}")


def _require_type(df: DataFrame, name: str, types: tuple[type[DataType], ...]) -> None:
    found = df.schema[name].dataType
    if not isinstance(found, types):
        wanted = "string or binary" if BinaryType in types else "string"
        raise FrameError("column-type", f"column {name!r} has to be {wanted}, not {found.simpleString()}")


def _refuse_taken(kept: Sequence[str], added: Sequence[str]) -> None:
    taken = sorted({name.lower() for name in kept} & set(added))
    if taken:
        named = ", ".join(taken)
        raise FrameError("column-taken", f"rename {named} or do not keep it: the result has its own")


def quoted(names: Sequence[str]) -> list[str]:
    """Names as SQL takes them literally: a dot in one is no way into a structure."""
    return [f"`{name.replace('`', '``')}`" for name in names]
