"""The plan `chain` (seed 004, 3.3): one line of each row after the other, a loop of joins.

After the first join, every level joins the next line of the rows that are left with the messages' values, and
keeps those with a hit, once each: the form that the seed calls recursive, without shared prefixes. The order
of lines is that of the row: equalities before ranges. Cost: for each level the rows that are left, times the
values at their paths.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tamis.spark.relational.first_join import CANDIDATE, first_join
from tamis.spark.relational.hits import CANDIDATE_KEY, hits
from tamis.spark.relational.values_of_batch import BatchOfValues


def chain(batch: BatchOfValues) -> DataFrame:
    """The candidates of a batch, as `plans` describes them."""
    parts = [rows for _, rows in first_join(batch, lambda messages: messages)]
    reached = reduce(DataFrame.unionByName, parts).withColumn("is_decided", f.lit(False))
    reached = reached.select(*CANDIDATE).localCheckpoint()
    longest = reached.agg(f.max(f.size("lines"))).first()
    for place in range(1, (longest and longest[0]) or 0):
        ends, going_on = reached.where(f.size("lines") <= place), reached.where(f.size("lines") > place)
        lines = going_on.select(*CANDIDATE_KEY, f.expr(f"get(lines, {place})").alias("line"))
        holding = hits(batch, lines).select(*CANDIDATE_KEY).distinct()
        kept = going_on.join(holding, list(CANDIDATE_KEY), "left_semi")
        reached = ends.unionByName(kept.select(*CANDIDATE)).localCheckpoint()
    return reached
