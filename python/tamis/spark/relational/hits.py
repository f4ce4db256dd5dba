"""Candidates → those whose lines have hits that agree on the nodes of their anchors (BrPred, seed 004, 3.5).

A hit of a line is reduced to the nodes of the anchors above it, and equal ones are one. Then anchors are
reduced from the innermost out, as Yannakakis' algorithm does for an acyclic join: an element of an anchor
stays if every line and every anchor that hangs from it has a hit there. So combinations of values never
arise; the cost is that of the hits.

    //item[price > 50][tag = 'sale']   lines 0: tag, 1: price   anchor 0: item, needs 2
      hits      line 0 at [5]; line 1 at [2], [5]
      level 1   item 5 has both           level 0   the document has anchor 0: the candidate holds
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tamis.relational.alternative import MAX_LEVELS
from tamis.spark.relational.values_of_batch import KEY, BatchOfValues

CANDIDATE_KEY = (*KEY, "query", "alternative")

ANCHOR = 1000
"""Anchors that hang from others are numbered from here, lines from 0."""


def agreeing(batch: BatchOfValues, candidates: DataFrame, levels: int) -> tuple[DataFrame, DataFrame]:
    """The candidates that hold, and those with a path of too many bindings, both as rows of `CANDIDATE_KEY`.

    `levels` is how many anchors lie inside one another at most.
    """
    lines = candidates.select(
        *CANDIDATE_KEY, "anchors", "needs", f.posexplode("lines").alias("child", "line")
    )
    found = hits(batch, lines).localCheckpoint()
    unbounded = found.where("NOT is_bounded AND size(line.places) > 0").select(*CANDIDATE_KEY).distinct()
    bounded = found.where("is_bounded OR size(line.places) = 0").select(
        *CANDIDATE_KEY,
        "anchors",
        "needs",
        "child",
        f.col("line.anchor").alias("anchor"),
        f.expr(
            "CASE WHEN size(line.places) = 0 THEN array(CAST(array() AS array<int>)) ELSE "
            "array_distinct(transform(bindings, binding -> transform(line.places, "
            "place -> get(elements, get(binding, place) - 1)))) END"
        ).alias("tuples"),
    )
    # Each level reads the one before twice: computed once, or it would cost two to the power of levels.
    reduced = bounded.withColumn("nodes", f.explode("tuples")).drop("tuples").distinct().localCheckpoint()
    for level in range(min(levels, MAX_LEVELS), 0, -1):
        here = reduced.where(f.size("nodes") == level)
        above = reduced.where(f.size("nodes") < level)
        grouped = here.groupBy(*CANDIDATE_KEY, "anchors", "needs", "anchor", "nodes").agg(
            f.countDistinct("child").alias("children")
        )
        whole = grouped.where("children = get(anchors, anchor).needs")
        lifted = whole.select(
            *CANDIDATE_KEY,
            "anchors",
            "needs",
            (f.col("anchor") + ANCHOR).alias("child"),
            f.expr("get(anchors, anchor).parent").alias("anchor"),
            f.slice("nodes", 1, level - 1).alias("nodes"),
        )
        reduced = above.unionByName(lifted).localCheckpoint()
    at_document = reduced.groupBy(*CANDIDATE_KEY, "needs").agg(f.countDistinct("child").alias("children"))
    return at_document.where("children = needs").select(*CANDIDATE_KEY), unbounded


def refuted(batch: BatchOfValues, candidates: DataFrame) -> DataFrame:
    """The candidates with a hit of a negated line."""
    lines = candidates.where("size(negative) > 0").select(*CANDIDATE_KEY, f.explode("negative").alias("line"))
    return hits(batch, lines).select(*CANDIDATE_KEY).distinct()


def hits(batch: BatchOfValues, lines: DataFrame) -> DataFrame:
    """Lines of candidates with the values of their messages that pass their tests."""
    matches = batch.paths().alias("match")
    on_paths = lines.alias("one").join(matches, f.expr("one.line.path = match.path"))
    same = "one.tenant = value.tenant AND one.message = value.message AND match.tag_path = value.path_hash"
    joined = on_paths.join(batch.values.alias("value"), f.expr(same)).where(test())
    return joined.select("one.*", "match.bindings", "match.is_bounded", "value.elements")


def test() -> Column:
    """Whether a value passes the test of a line."""
    line = "one.line"
    equal_text = (
        f"(value.text = {line}.text AND value.length <=> {line}.length AND value.hash <=> {line}.hash)"
    )
    number = (
        f"(CASE WHEN {line}.subject = 'position' THEN CAST(value.position AS double) "
        f"WHEN {line}.subject = 'element position' THEN CAST(value.element_position AS double) "
        "ELSE value.number END)"
    )
    return f.expr(
        f"coalesce(CASE {line}.operator WHEN 'exists' THEN true "
        f"WHEN '=' THEN if({line}.text IS NOT NULL, {equal_text}, {number} = {line}.number) "
        f"WHEN '!=' THEN if({line}.text IS NOT NULL, NOT {equal_text}, "
        f"{number} IS NULL OR {number} <> {line}.number) "
        f"WHEN '<' THEN {number} < {line}.number WHEN '<=' THEN {number} <= {line}.number "
        f"WHEN '>' THEN {number} > {line}.number WHEN '>=' THEN {number} >= {line}.number END, false)"
    )
