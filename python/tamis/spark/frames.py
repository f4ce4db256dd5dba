"""DataFrames of messages: what they must have, and the one step that Python workers do on them."""

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

from tamis.engine import Schema
from tamis.errors import FrameError
from tamis.model.matching import Generation, Limits
from tamis.spark.worker.task import Matching

Run: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a worker does with the batches of a task."""

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


MADE = StructType(
    [
        StructField("output", IntegerType()),
        StructField("code", StringType()),
        StructField("reason", StringType()),
    ]
)
"""What is made for a target: the place of its output, from 1, or why it failed; for a filter neither."""

OUTPUTS = StructField("outputs", ArrayType(BinaryType(), containsNull=False), nullable=False)
"""What transformations make of a message."""


ADDED = (
    StructField("targets", TARGETS, nullable=False),
    StructField("candidates", LongType(), nullable=False),
    StructField("error", ERROR),
)
"""What matching adds."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Messages as they are sent to the workers, and the step that matches them there."""

    rows: DataFrame
    step: Matching
    kept: Sequence[StructField]

    def through(self, run: Run, added: Sequence[StructField]) -> DataFrame:
        """What workers make of them: the columns to keep, and those that are added."""
        refuse_taken([field.name for field in self.kept], [field.name for field in added])
        return self.rows.mapInArrow(run, StructType([*self.kept, *added]))


def prepared(
    df: DataFrame,
    generation: Generation,
    *,
    message: str,
    keep: Sequence[str] | None,
    tenant: str,
    tenant_column: str | None,
    limits: Limits,
    elements: int = 0,
    transforms: bool = False,
    schema: Schema | None = None,
) -> Prepared:
    """Check what was asked for; for the options see `with_matches` and `transform`."""
    _require(df, [message, *([] if tenant_column is None else [tenant_column])])
    _require_type(df, message, (StringType, BinaryType, CharType, VarcharType))
    if tenant_column is not None:
        if tenant:
            raise FrameError("two-tenants", "give a tenant or a column of tenants, not both")
        _require_type(df, tenant_column, (StringType, CharType, VarcharType))
    kept = to_keep(df, message, keep)
    sent = list(dict.fromkeys([*kept, message, *([] if tenant_column is None else [tenant_column])]))
    step = Matching(
        generation=generation,
        message=sent.index(message),
        kept=len(kept),
        tenant=tenant,
        tenant_column=None if tenant_column is None else sent.index(tenant_column),
        limits=limits,
        elements=elements,
        transforms=transforms,
        schema=schema,
    )
    # Plain names on the way: mapInArrow looks columns up by name, and takes a dot for a way into a structure.
    plain = [f"{name} AS c{place}" for place, name in enumerate(quoted(sent))]
    return Prepared(df.selectExpr(*plain), step, [df.schema[name] for name in kept])


def to_keep(df: DataFrame, message: str, keep: Sequence[str] | None) -> list[str]:
    """The columns to keep: unless given, all but the message."""
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


def refuse_taken(kept: Sequence[str], added: Sequence[str]) -> None:
    """Refuse to keep columns that the result has of its own."""
    taken = sorted({name.lower() for name in kept} & set(added))
    if taken:
        named = ", ".join(taken)
        raise FrameError("column-taken", f"rename {named} or do not keep it: the result has its own")


def quoted(names: Sequence[str]) -> list[str]:
    """Names as SQL takes them literally: a dot in one is no way into a structure."""
    return [f"`{name.replace('`', '``')}`" for name in names]
