"""The first join of every plan: rows of alternatives whose access line has a hit in a message.

The access line is the most selective one (`alternative.py`): a text or a number at a path, or the path alone.
PathMatch turns its linear path into the tag paths of the batch: the join is by equality of path and value.

    row    //item/tag = 'sale'     PathMatch  /order/item/tag    hit  m1, /order/item/tag, 'sale'

The messages' side is broadcast and the table of subscriptions streams by, so that no key is skewed. Cost: one
probe for each row and tag path, and the rows that come out.
"""

from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tamis.relational.alternative import ALWAYS, NUMBER, PATH, TEXT
from tamis.spark.relational.values_of_batch import KEY, BatchOfValues

ROW = ("query", "alternative", "lines", "negative", "anchors", "needs", "reason")
"""What the row of an alternative says."""

CANDIDATE = (*KEY, *ROW, "is_decided")
"""The columns of candidates; `is_decided`: nothing is left to test."""

_FIRST = ("path", "text", "length", "hash", "number")


def first_join(
    batch: BatchOfValues, described: Callable[[DataFrame], DataFrame]
) -> Iterator[tuple[str, DataFrame]]:
    """Rows `KEY`, `ROW` and what `described` adds to messages, for each kind of access."""
    rows = batch.table("alternatives")
    for access, use in ((TEXT, "texts"), (NUMBER, "numbers"), (PATH, "paths")):
        if any(uses[use] > 0 for uses in batch.linear.values()):
            yield access, _looked_up(batch, rows.where(f.col("access") == access), access, use, described)
    # Nothing is necessary for these: as many candidates as messages times such rows.
    messages = f.broadcast(described(batch.values.select(*KEY).distinct())).alias("hit")
    always = rows.where(f.col("access") == ALWAYS).alias("row")
    joined = batch.count_rows(messages.join(always, f.expr("hit.tenant = row.tenant")))
    yield ALWAYS, joined.selectExpr("hit.*", *(f"row.{name}" for name in ROW))


def _looked_up(
    batch: BatchOfValues, rows: DataFrame, access: str, use: str, described: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Rows by access lines of one kind."""
    paths = batch.paths(use).select("tag_path", "path").alias("match")
    tag_paths = f.broadcast(batch.paths(use).select("tag_path").distinct()).alias("used")
    on_paths = f.expr("value.path_hash = used.tag_path")
    values = batch.values.alias("value").join(tag_paths, on_paths, "left_semi")
    wanted = {TEXT: ["text", "length", "hash"], NUMBER: ["number"], PATH: []}[access]
    if access == NUMBER:
        values = values.where("number IS NOT NULL")
    hits = f.broadcast(described(values.select(*KEY, "path_hash", *wanted).distinct())).alias("hit")
    equal = {
        TEXT: " AND hit.text = row.first_text AND hit.length <=> row.first_length"
        " AND hit.hash <=> row.first_hash",
        NUMBER: " AND hit.number = row.first_number",
        PATH: "",
    }[access]
    # The line in columns of its own: Spark joins by equality of columns.
    first = rows.select("tenant", *ROW, f.expr("get(lines, 0)").alias("line"))
    first = first.select("*", *(f.col(f"line.{name}").alias(f"first_{name}") for name in _FIRST)).drop("line")
    expanded = first.alias("row").join(paths, f.expr("row.first_path = match.path"))
    condition = f"hit.tenant = row.tenant AND hit.path_hash = match.tag_path{equal}"
    joined = batch.count_rows(expanded.join(hits, f.expr(condition)))
    return joined.selectExpr("hit.*", *(f"row.{name}" for name in ROW)).drop("path_hash", *wanted)
