"""XML as rows that SQL can join: `values`, a row for each element, attribute and text node of a message."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
)

from tamis.model.matching import Limits
from tamis.spark.frames import ERROR, select_messages
from tamis.spark.worker.values import ValuesTask

VALUE_COLUMNS = (
    StructField("node", IntegerType()),
    StructField("kind", StringType()),
    StructField("path", StringType()),
    StructField("path_hash", LongType()),
    StructField("elements", ArrayType(IntegerType())),
    StructField("position", IntegerType()),
    StructField("element_position", IntegerType()),
    StructField("text", StringType()),
    StructField("length", LongType()),
    StructField("hash", BinaryType()),
    StructField("number", DoubleType()),
    StructField("error", ERROR),
)
"""The columns of `tamis.Values`, and the error of a refused message, all other columns of which are null."""

_DEFAULT_LIMITS = Limits()


def values(
    df: DataFrame,
    *,
    message: str = "message",
    keep: Sequence[str] | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> DataFrame:
    """One row for each element, attribute and text node of each message; one row for a refused message.

    Rows have the kept columns, those of `tamis.Values.rows` but `message`, and `error`. For the options see
    `with_matches`.
    """
    sent = select_messages(df, message=message, keep=keep)
    return sent.map_batches(ValuesTask(sent.message, len(sent.kept), limits).run, VALUE_COLUMNS)
