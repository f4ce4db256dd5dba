"""Matched messages → deliveries and dead letters."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.spark.subscriptions import RECIPIENTS

REFUSED = "code IS NOT NULL OR error IS NOT NULL"
"""SQL: whether the source or the reader refused the message."""


def refuse_duplicates(matched: DataFrame) -> DataFrame:
    """Of several messages with one id, only the first is delivered; one with other content is refused.

    Delivery ids are made of message ids, so two messages with one id would be the same delivery.
    """
    # By length first: "a.jsonl#9 at 90" comes before "a.jsonl#10 at 99".
    order = ("received", F.length("offset"), "offset")
    same_id = Window.partitionBy("source", "id", is_refused()).orderBy(*order)
    is_repeated = ~is_refused() & (F.row_number().over(same_id) > 1)
    differs = is_repeated & (F.col("xml") != F.first("xml").over(same_id))
    reason = F.concat(F.lit("the batch has another message with this id: "), F.first("offset").over(same_id))
    replaced = {
        "code": F.when(differs, "duplicate-id").otherwise(F.col("code")),
        "reason": F.when(differs, reason).otherwise(F.col("reason")),
        RECIPIENTS.name: F.when(is_repeated, F.slice(RECIPIENTS.name, 1, 0)).otherwise(
            F.col(RECIPIENTS.name)
        ),
    }
    return matched.select(*(replaced.get(name, F.col(name)).alias(name) for name in matched.columns))


def deliveries(matched: DataFrame) -> DataFrame:
    """One row for each message and each subscription that it matches."""
    # Exploded by Spark, not by the worker: a message with many recipients crosses the border once.
    return _by_recipient(matched).where("recipient.code IS NULL").selectExpr(*_DELIVERY)


def _by_recipient(matched: DataFrame) -> DataFrame:
    exploded = "explode(matched_subscriptions) AS recipient"
    return matched.where("size(matched_subscriptions) > 0").selectExpr("*", exploded)


def _hash(*parts: str) -> str:
    """SQL: the hash of texts."""
    # With their lengths, so that distinct parts never concatenate to the same text.
    texts = ", ".join(f"CAST(length({part}) AS string), ':', {part}" for part in parts)
    return f"substring(sha2(CAST(concat({texts}) AS binary), 256), 1, 32)"


# In SQL, whole: each operator in Python would be a call into the JVM, for every batch.
_DELIVERY = (
    # Stable across retries.
    f"{_hash('source', 'id', 'recipient.subscription', 'CAST(recipient.revision AS string)')} AS id",
    "id AS message",
    "source",
    "recipient.subscription AS subscription",
    "recipient.revision AS revision",
    "recipient.subscriber AS subscriber",
    "tenant",
    "recipient.delivery_target AS delivery_target",
    "generation",
    "received",
    "matched",
    "if(recipient.output IS NOT NULL, 'UTF-8', encoding) AS encoding",
    "headers",
    "if(recipient.output IS NOT NULL, element_at(outputs, recipient.output), xml) AS payload",
)


def dead_letters(matched: DataFrame) -> DataFrame:
    """One row for each message that its source or the XML reader refused.

    And one for each failed transformation: then the message still reaches the other subscriptions.
    """
    error = F.col("error")
    by_source = F.col("code").isNotNull()

    def position(name: str) -> Column:
        return F.when(~by_source, error[name])

    refused = matched.where(is_refused()).select(
        *_LETTER,
        F.coalesce("code", error["code"]).alias("code"),
        F.when(by_source, F.coalesce("reason", F.lit(""))).otherwise(error["reason"]).alias("reason"),
        F.lit(None).cast("string").alias("subscription"),
        F.lit(None).cast("string").alias("delivery"),
        *(position(name).alias(as_name) for name, as_name in _POSITION.items()),
        F.coalesce("xml", F.lit(b"")).alias("raw"),
    )
    failed = (
        _by_recipient(matched)
        .where(F.col("recipient.code").isNotNull())
        .select(
            *_LETTER,
            F.col("recipient.code").alias("code"),
            F.col("recipient.reason").alias("reason"),
            F.col("recipient.subscription").alias("subscription"),
            F.lit(None).cast("string").alias("delivery"),
            *(F.lit(None).cast("bigint").alias(as_name) for as_name in _POSITION.values()),
            F.col("xml").alias("raw"),
        )
    )
    return refused.unionByName(failed)


_LETTER = ("tenant", "source", "id", "offset", "received", "encoding", "headers")
_POSITION = {"offset": "position", "line": "line", "column": "column"}


def is_refused() -> Column:
    """`REFUSED` as a column."""
    return F.expr(REFUSED)
