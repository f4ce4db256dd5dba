"""The plan `unroll` (seed 004, 4.3): all lines of an alternative in one row, looked up by the most selective.

After the first join, the ranges of a row are tested at once against the largest and the smallest number that
the message has at their paths (`screen`). For

    /stock[symbol = 'IBM'][price > 50]   access: /stock/symbol = 'IBM'; range: /stock/price > 50

and a message with the symbol IBM and the price 60, that is all: nothing is left to join.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tamis.relational.alternative import ALWAYS, NUMBER, PATH, TEXT
from tamis.spark.relational.first_join import CANDIDATE, first_join
from tamis.spark.relational.values_of_batch import KEY, MAX_RANGE_PATHS, BatchOfValues

MAX_SCREENED = 8
"""Lines of a row that are screened; those of longer rows are joined."""


def unroll(batch: BatchOfValues) -> DataFrame:
    """The candidates of a batch, as `plans` describes them."""
    has_extremes = batch.range_paths <= MAX_RANGE_PATHS
    parts = []
    for access, rows in first_join(batch, lambda messages: _with_extremes(batch, messages)):
        kept = rows.where(screen()) if has_extremes else rows
        decided = (
            _decided(access) if has_extremes else "size(lines) <= 1 AND " + _decided(access, ranges=False)
        )
        parts.append(kept.withColumn("is_decided", f.expr(decided)).select(*CANDIDATE))
    return reduce(DataFrame.unionByName, parts)


def _decided(access: str, *, ranges: bool = True) -> str:
    """Whether nothing is left to test of a row that passed the screen: the rest are ranges, no anchors."""
    is_range = "({0}.operator IN ('<', '<=', '>', '>=') AND NOT endswith({0}.subject, 'position'))"
    first = (
        f"get(lines, 0).operator = 'exists' OR ({str(ranges).lower()} AND {is_range.format('get(lines, 0)')})"
    )
    tested = {
        TEXT: "true",
        NUMBER: "NOT endswith(get(lines, 0).subject, 'position')",
        PATH: first,
        ALWAYS: "true",
    }[access]
    others = f"forall(slice(lines, 2, {MAX_SCREENED}), line -> {is_range.format('line')})"
    simple = f"size(anchors) = 0 AND size(negative) = 0 AND size(lines) <= {MAX_SCREENED}"
    return f"{simple} AND {others} AND ({tested})"


def _with_extremes(batch: BatchOfValues, messages: DataFrame) -> DataFrame:
    """Adds `extremes`: for each path with ranges, the smallest and the largest number of the message."""
    if not 0 < batch.range_paths <= MAX_RANGE_PATHS:
        kind = "map<bigint, struct<low: double, high: double>>"
        return messages.withColumn("extremes", f.expr(f"CAST(map() AS {kind})"))
    paths = batch.paths("ranges").select("tag_path", "path").alias("match")
    numbers = batch.values.where("number IS NOT NULL").alias("value")
    joined = numbers.join(paths, f.expr("value.path_hash = match.tag_path"))
    of_path = joined.groupBy("value.tenant", "value.message", "match.path").agg(
        f.min("value.number").alias("low"), f.max("value.number").alias("high")
    )
    entry = f.struct("path", f.struct("low", "high"))
    of_message = of_path.groupBy(*KEY).agg(f.map_from_entries(f.collect_list(entry)).alias("extremes"))
    return messages.join(of_message, list(KEY), "left")


def screen() -> Column:
    """Whether no range is out of reach of the message's numbers, written out for each place of a row."""
    tests = []
    for place in range(MAX_SCREENED):
        line = f"get(lines, {place})"
        low, high = (f"extremes[{line}.path].{end}" for end in ("low", "high"))
        test = (
            f"CASE WHEN size(lines) <= {place} OR endswith({line}.subject, 'position') THEN true "
            f"WHEN {line}.operator = '>' THEN {high} > {line}.number "
            f"WHEN {line}.operator = '>=' THEN {high} >= {line}.number "
            f"WHEN {line}.operator = '<' THEN {low} < {line}.number "
            f"WHEN {line}.operator = '<=' THEN {low} <= {line}.number ELSE true END"
        )
        tests.append(f"coalesce({test}, false)")
    return f.expr(" AND ".join(tests))
