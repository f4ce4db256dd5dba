"""Checks of DataFrames of messages, and the step that Python workers run on them (`mapInArrow`)."""

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

from tamis.errors import FrameError
from tamis.model.matching import Generation, Limits
from tamis.schema import Schema
from tamis.spark.worker.task import WORK, MatchTask

Run: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function from the Arrow batches of a task to Arrow batches, for `mapInArrow`."""

TARGETS = ArrayType(LongType(), containsNull=False)

ERROR = StructType(
    [
        StructField("code", StringType(), nullable=False),
        StructField("reason", StringType(), nullable=False),
        *(StructField(name, LongType()) for name in ("offset", "line", "column", "value", "limit")),
    ]
)
"""Why a message was refused; the fields of `tamis.ReadError`."""

ELEMENT = StructType(
    [
        StructField("node", IntegerType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        *(StructField(name, IntegerType()) for name in ("attribute", "span_start", "span_end")),
    ]
)
"""A node that a query selects; the fields of `Index.match_elements`."""


RESULT = StructType(
    [
        StructField("output", IntegerType()),
        StructField("code", StringType()),
        StructField("reason", StringType()),
    ]
)
"""The result for a target: the index of its output, from 1, or why it failed; all null for a filter."""

OUTPUTS = StructField("outputs", ArrayType(BinaryType(), containsNull=False), nullable=False)
"""The outputs of the transformations of a message."""


WORK_TYPE = StructType([StructField(name, LongType(), nullable=False) for name in (*WORK, "cache_bytes")])
"""The work of a message by stage, and the bytes in the caches of its worker after its batch."""

MATCH_RESULT = (
    StructField("candidates", LongType(), nullable=False),
    StructField("work", WORK_TYPE, nullable=False),
    StructField("failed", LongType(), nullable=False),
    StructField("skipped_entities", LongType(), nullable=False),
    StructField("error", ERROR),
)

MATCH_COLUMNS = (StructField("targets", TARGETS, nullable=False), *MATCH_RESULT)
"""The columns that matching adds."""


@dataclass(frozen=True, slots=True)
class SentRows:
    """The rows that are sent to the workers."""

    rows: DataFrame
    message: int
    """The number of the column with the messages."""
    kept: Sequence[StructField]
    """The first columns, which come back."""
    columns: Sequence[str]
    """The names of all columns, as they were."""

    def map_batches(self, run: Run, added: Sequence[StructField]) -> DataFrame:
        """Run a function on the workers; the result has the kept columns and the added ones."""
        refuse_name_clash([field.name for field in self.kept], [field.name for field in added])
        return self.rows.mapInArrow(run, StructType([*self.kept, *added]))


@dataclass(frozen=True, slots=True)
class WorkerStep:
    """The rows that are sent to the workers, and what the workers match them against."""

    sent: SentRows
    step: MatchTask

    @property
    def kept(self) -> Sequence[StructField]:
        """The columns that come back."""
        return self.sent.kept

    def map_batches(self, run: Run, added: Sequence[StructField]) -> DataFrame:
        """See `SentRows`."""
        return self.sent.map_batches(run, added)


def select_messages(
    df: DataFrame, *, message: str, keep: Sequence[str] | None, more: Sequence[str] = ()
) -> SentRows:
    """Check the column of messages, and select it with the columns to keep and those needed besides."""
    _require(df, [message, *more])
    _require_type(df, message, (StringType, CharType, VarcharType, BinaryType))
    kept = columns_to_keep(df, message, keep)
    sent = list(dict.fromkeys([*kept, message, *more]))
    # Temporary names: mapInArrow looks columns up by name and interprets a dot as field access.
    renamed = [f"{name} AS c{number}" for number, name in enumerate(quoted(sent))]
    fields = [df.schema[name] for name in kept]
    return SentRows(df.selectExpr(*renamed), sent.index(message), fields, sent)


def prepare(
    df: DataFrame,
    generation: Generation,
    *,
    message: str,
    keep: Sequence[str] | None,
    tenant: str,
    tenant_column: str | None,
    limits: Limits,
    envelope: str | None = None,
    elements: int = 0,
    transforms: bool = False,
    schema: Schema | None = None,
) -> WorkerStep:
    """Check the options, which `with_matches` and `transform` describe, and select the columns to send."""
    sent = select_messages(
        df, message=message, keep=keep, more=[one for one in (tenant_column, envelope) if one is not None]
    )
    if envelope is not None:
        _require_type(df, envelope, (StructType,))
    if tenant_column is not None:
        if tenant:
            raise FrameError("two-tenants", "give a tenant or a column of tenants, not both")
        _require_type(df, tenant_column, (StringType, CharType, VarcharType))
    step = MatchTask(
        generation=generation,
        message=sent.message,
        kept=len(sent.kept),
        tenant=tenant,
        tenant_column=None if tenant_column is None else sent.columns.index(tenant_column),
        envelope=None if envelope is None else sent.columns.index(envelope),
        limits=limits,
        elements=elements,
        transforms=transforms,
        schema=schema,
    )
    return WorkerStep(sent, step)


def columns_to_keep(df: DataFrame, message: str, keep: Sequence[str] | None) -> list[str]:
    """The columns to keep; by default all except the message."""
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
        expected = {BinaryType: "string or binary", StructType: "a struct"}.get(types[-1], "string")
        raise FrameError("column-type", f"column {name!r} must be {expected}, not {found.simpleString()}")


def refuse_name_clash(kept: Sequence[str], added: Sequence[str]) -> None:
    """Refuse to keep columns whose names the result uses itself."""
    clashes = sorted({name.lower() for name in kept} & set(added))
    if clashes:
        named = ", ".join(clashes)
        raise FrameError("column-taken", f"rename {named} or do not keep it: the result has its own")


def quoted(names: Sequence[str]) -> list[str]:
    """Quote names for SQL, so that a dot is not field access."""
    return [f"`{name.replace('`', '``')}`" for name in names]
