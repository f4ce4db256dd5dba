"""Pairs of a message and a query that joins cannot decide → the kernel (`Index.match_pairs`)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from tamis.model.matching import Generation, Limits
from tamis.spark.relational.values_of_batch import KEY
from tamis.spark.worker.pairs import PairsTask


def verified(
    messages: DataFrame, pairs: DataFrame, subscriptions: DataFrame, generation: Generation, limits: Limits
) -> DataFrame:
    """The matches among pairs (`tenant`, `message`, `query`), as rows `tenant`, `message`, `target`.

    `messages` has `tenant`, `message`, `content` and, if queries may ask for it, `envelope`.
    """
    one = subscriptions.groupBy("tenant", "query").agg(f.min("target").alias("target"))
    targets = pairs.join(one, ["tenant", "query"]).groupBy(*KEY).agg(f.collect_set("target").alias("targets"))
    rest = [name for name in ("envelope",) if name in messages.columns]
    sent = messages.dropDuplicates(list(KEY)).join(targets, list(KEY))
    sent = sent.select(*KEY, "content", "targets", *rest)
    kept = [sent.schema[name] for name in KEY]
    schema = StructType([*kept, StructField("targets", ArrayType(LongType()))])
    found = sent.mapInArrow(PairsTask(generation, limits).run, schema)
    return found.select(*KEY, f.explode("targets").alias("target"))
