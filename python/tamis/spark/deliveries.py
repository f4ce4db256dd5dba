"""Sifted messages → deliveries, and dead letters."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.pipeline.batch_log import Counts


def count(sifted: DataFrame) -> Counts:
    """What became of the messages of a batch."""
    wanted = F.size("wanted")
    # In SQL's words: Python's would name the one anew each time, and Spark compile the program anew.
    failed = F.expr("size(filter(wanted, one -> one.code IS NOT NULL))")
    row = sifted.agg(
        F.count("*").alias("read"),
        F.count_if(wanted > 0).alias("matched"),
        F.count_if(_refused()).alias("dead"),
        F.coalesce(F.sum(wanted - failed), F.lit(0)).alias("deliveries"),
        F.coalesce(F.sum(failed), F.lit(0)).alias("failed"),
        F.coalesce(F.sum("candidates"), F.lit(0)).alias("candidates"),
    ).first()
    assert row is not None
    return Counts(**row.asDict())


def deliveries(sifted: DataFrame) -> DataFrame:
    """One row for each message and each subscription that wants it."""
    # Spark's own side of the border: a message that many want crosses it once.
    wanted = sifted.where(F.size("wanted") > 0).select("*", F.explode("wanted").alias("by"))
    transformed = F.col("by.output").isNotNull()
    named = wanted.where(F.col("by.code").isNull()).select(
        F.col("id").alias("message"),
        "source",
        F.col("by.subscription").alias("subscription"),
        F.col("by.revision").alias("revision"),
        F.col("by.subscriber").alias("subscriber"),
        "tenant",
        F.col("by.delivery_target").alias("delivery_target"),
        "generation",
        "received",
        "matched",
        F.when(transformed, F.lit("UTF-8")).otherwise(F.col("encoding")).alias("encoding"),
        F.when(transformed, F.element_at("outputs", F.col("by.output")))
        .otherwise(F.col("xml"))
        .alias("payload"),
    )
    return named.select(delivery_id().alias("id"), "*")


def delivery_id() -> Column:
    """The id of a delivery: the same whenever the same message meets the same revision of a subscription."""
    parts = [F.col(name).cast("string") for name in ("source", "message", "subscription", "revision")]
    # With their lengths, so that no two lists of parts run together to one text.
    texts = [text for part in parts for text in (F.length(part).cast("string"), F.lit(":"), part)]
    return F.substring(F.sha2(F.concat(*texts).cast("binary"), 256), 1, 32)


def dead_letters(sifted: DataFrame) -> DataFrame:
    """One row for each message that was refused, by its source or by the reader.

    And one for each subscription whose transformation of a message failed: the message reached all others.
    """
    error = F.col("error")
    by_source = F.col("code").isNotNull()

    def place(name: str) -> Column:
        return F.when(~by_source, error[name])

    refused = sifted.where(_refused()).select(
        *_LETTER,
        F.coalesce("code", error["code"]).alias("code"),
        F.when(by_source, F.coalesce("reason", F.lit(""))).otherwise(error["reason"]).alias("reason"),
        F.lit(None).cast("string").alias("subscription"),
        F.lit(None).cast("string").alias("delivery"),
        *(place(name).alias(as_name) for name, as_name in _PLACE.items()),
        F.coalesce("xml", F.lit(b"")).alias("raw"),
    )
    wanted = sifted.where(F.size("wanted") > 0).select("*", F.explode("wanted").alias("by"))
    failed = wanted.where(F.col("by.code").isNotNull()).select(
        *_LETTER,
        F.col("by.code").alias("code"),
        F.col("by.reason").alias("reason"),
        F.col("by.subscription").alias("subscription"),
        F.lit(None).cast("string").alias("delivery"),
        *(F.lit(None).cast("bigint").alias(as_name) for as_name in _PLACE.values()),
        F.col("xml").alias("raw"),
    )
    return refused.unionByName(failed)


_LETTER = ("tenant", "source", "id", "offset", "received", "encoding")
_PLACE = {"offset": "position", "line": "line", "column": "column"}


def _refused() -> Column:
    return F.col("code").isNotNull() | F.col("error").isNotNull()
