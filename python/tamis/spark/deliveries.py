"""Matched messages → deliveries, dead letters and counts."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.pipeline.batch_log import Counts
from tamis.spark.subscriptions import RECIPIENTS
from tamis.spark.worker.task import WORK

_SUMS = ("candidates", *(f"work.{name}" for name in WORK), "skipped_entities")


def count(matched: DataFrame) -> tuple[Counts, bool]:
    """The counts of a batch, and whether an id occurs twice in it, in one Spark job."""
    matching = F.size("matched_subscriptions")
    # In SQL: a Python lambda gets a new variable name in each batch, so Spark would generate code again.
    failed = F.expr("size(filter(matched_subscriptions, one -> one.code IS NOT NULL))")
    row = matched.agg(
        F.count("*").alias("read"),
        F.count_if(matching > 0).alias("matched"),
        F.count_if(is_refused()).alias("dead"),
        F.coalesce(F.sum(matching - failed), F.lit(0)).alias("deliveries"),
        F.coalesce(F.sum(failed), F.lit(0)).alias("failed"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name.removeprefix("work.")) for name in _SUMS),
        # Of the worker that has most: workers take turns, so a sum would count one several times.
        F.coalesce(F.max("work.cache_bytes"), F.lit(0)).alias("cache_bytes"),
        F.coalesce(F.max("subscription_bytes"), F.lit(0)).alias("subscription_bytes"),
        # A set of hashes, because a distinct count would need another shuffle.
        F.size(F.collect_set(F.when(~is_refused(), F.xxhash64("source", "id")))).alias("ids"),
    ).first()
    assert row is not None
    values = row.asDict()
    ids = values.pop("ids")
    return Counts(**values), ids < row["read"] - row["dead"]


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
    rows = _by_recipient(matched)
    transformed = F.col("recipient.output").isNotNull()
    named = rows.where(F.col("recipient.code").isNull()).select(
        F.col("id").alias("message"),
        "source",
        F.col("recipient.subscription").alias("subscription"),
        F.col("recipient.revision").alias("revision"),
        F.col("recipient.subscriber").alias("subscriber"),
        "tenant",
        F.col("recipient.delivery_target").alias("delivery_target"),
        "generation",
        "received",
        "matched",
        F.when(transformed, F.lit("UTF-8")).otherwise(F.col("encoding")).alias("encoding"),
        "headers",
        F.when(transformed, F.element_at("outputs", F.col("recipient.output")))
        .otherwise(F.col("xml"))
        .alias("payload"),
    )
    return named.select(delivery_id().alias("id"), "*")


def _by_recipient(matched: DataFrame) -> DataFrame:
    recipient = F.explode("matched_subscriptions").alias("recipient")
    return matched.where(F.size("matched_subscriptions") > 0).select("*", recipient)


def delivery_id() -> Column:
    """The id of a delivery: a hash of source, message, subscription and revision; stable across retries."""
    parts = [F.col(name).cast("string") for name in ("source", "message", "subscription", "revision")]
    # With their lengths, so that distinct parts never concatenate to the same text.
    texts = [text for part in parts for text in (F.length(part).cast("string"), F.lit(":"), part)]
    return F.substring(F.sha2(F.concat(*texts).cast("binary"), 256), 1, 32)


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
    """Whether the source or the reader refused the message."""
    return F.col("code").isNotNull() | F.col("error").isNotNull()
