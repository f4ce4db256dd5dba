"""The plan `unroll` (seed 004, 4.3): all lines of an alternative in one row, looked up by the most selective.

One join finds the candidates: rows whose access line has a hit. The messages' side is broadcast, and the
table of subscriptions streams by, so no key is skewed. The ranges of a row are tested at once against the
largest and the smallest number that the message has at their paths (`screen`). For

    /stock[symbol = 'IBM'][price > 50]   access: /stock/symbol = 'IBM'; range: /stock/price > 50

and a message with the symbol IBM and the price 60, that is all: nothing is left to join.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tamis.relational.alternative import ALWAYS, NUMBER, PATH, TEXT
from tamis.spark.relational.values_of_batch import KEY, MAX_RANGE_PATHS, BatchOfValues

MAX_SCREENED = 8
"""Lines of a row that are screened; those of longer rows are joined."""

CANDIDATE = (*KEY, "query", "alternative", "lines", "negative", "anchors", "needs", "reason", "is_decided")


def unroll(batch: BatchOfValues) -> DataFrame:
    """The candidates of a batch, as `plans` describes them."""
    rows = batch.table("alternatives")
    found = None
    for access, use in ((TEXT, "texts"), (NUMBER, "numbers"), (PATH, "paths")):
        if not any(uses[use] > 0 for uses in batch.linear.values()):
            continue
        candidates = _looked_up(batch, rows.where(f.col("access") == access), access, use)
        found = candidates if found is None else found.unionByName(candidates)
    # Nothing is necessary for these: as many candidates as messages times such rows.
    messages = f.broadcast(_with_extremes(batch, batch.values.select(*KEY).distinct()))
    always = rows.where(f.col("access") == ALWAYS).alias("row")
    unconditional = batch.count_rows(
        messages.alias("message").join(always, f.expr("message.tenant = row.tenant"))
    )
    candidates = unconditional.selectExpr("message.tenant", "message.message", *_ROW)
    candidates = candidates.withColumn("is_decided", f.expr("size(negative) = 0"))
    found = candidates if found is None else found.unionByName(candidates)
    return found.select(*CANDIDATE)


_ROW = ("query", "alternative", "lines", "negative", "anchors", "needs", "reason")


def _looked_up(batch: BatchOfValues, rows: DataFrame, access: str, use: str) -> DataFrame:
    """Candidates by access lines of one kind."""
    paths = batch.paths(use).select("tag_path", "path").alias("match")
    tag_paths = f.broadcast(batch.paths(use).select("tag_path").distinct()).alias("used")
    values = batch.values.alias("value").join(
        tag_paths, f.expr("value.path_hash = used.tag_path"), "left_semi"
    )
    wanted = {TEXT: ["text", "length", "hash"], NUMBER: ["number"], PATH: []}[access]
    if access == NUMBER:
        values = values.where("number IS NOT NULL")
    hits = values.select(*KEY, "path_hash", *wanted).distinct()
    hits = f.broadcast(_with_extremes(batch, hits)).alias("hit")
    on = {
        TEXT: "hit.text = first.text AND hit.length <=> first.length AND hit.hash <=> first.hash",
        NUMBER: "hit.number = first.number",
        PATH: "true",
    }[access]
    # The line in columns of its own: Spark joins by equality of columns.
    first = rows.select("tenant", *_ROW, f.expr("get(lines, 0)").alias("line"))
    first = first.select("*", *(f.col(f"line.{name}").alias(f"first_{name}") for name in _FIRST)).drop("line")
    expanded = first.alias("row").join(paths, f.expr("row.first_path = match.path"))
    for name in _FIRST:
        on = on.replace(f"first.{name}", f"row.first_{name}")
    condition = f"hit.tenant = row.tenant AND hit.path_hash = match.tag_path AND {on}"
    joined = batch.count_rows(expanded.join(hits, f.expr(condition)))
    kept = joined.selectExpr("hit.tenant", "hit.message", *(f"row.{name}" for name in _ROW), "hit.extremes")
    has_extremes = batch.range_paths <= MAX_RANGE_PATHS
    if has_extremes:
        kept = kept.where(screen())
    decided = _decided(access) if has_extremes else "size(lines) = 1 AND " + _decided(access, ranges=False)
    return kept.withColumn("is_decided", f.expr(decided)).drop("extremes")


def _decided(access: str, *, ranges: bool = True) -> str:
    """Whether nothing is left to test of a row that passed the screen: the rest are ranges, no anchors."""
    is_range = "({0}.operator IN ('<', '<=', '>', '>=') AND NOT endswith({0}.subject, 'position'))"
    first = (
        f"get(lines, 0).operator = 'exists' OR ({str(ranges).lower()} AND {is_range.format('get(lines, 0)')})"
    )
    tested = {TEXT: "true", NUMBER: "NOT endswith(get(lines, 0).subject, 'position')", PATH: first}[access]
    others = f"forall(slice(lines, 2, {MAX_SCREENED}), line -> {is_range.format('line')})"
    simple = f"size(anchors) = 0 AND size(negative) = 0 AND size(lines) <= {MAX_SCREENED}"
    return f"{simple} AND {others} AND ({tested})"


_FIRST = ("path", "text", "length", "hash", "number")


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
