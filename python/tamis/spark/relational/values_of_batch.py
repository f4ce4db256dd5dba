"""What a plan joins with: the values of a batch of messages and the matches of their tag paths."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from tamis.relational.tables import Tables

MAX_RANGE_PATHS = 64
"""Paths whose extreme values a message carries; with more of them, ranges are joined like other lines."""

KEY = ("tenant", "message")
"""What tells messages apart: the tenant, and 128 bits of the hash of the content."""


@dataclass(frozen=True, slots=True)
class BatchOfValues:
    """The values of messages, and how their tag paths match the linear paths of the tables."""

    spark: SparkSession
    tables: Tables
    values: DataFrame
    """A value table with `tenant` and `message`."""
    path_match: pa.Table
    linear: Mapping[int, Mapping[str, int]]
    """For each linear path, how its lines are used: columns of `linear_paths`."""

    observations: list[Observation] = field(default_factory=list)
    """Of the rows of first joins."""

    def count_rows(self, rows: DataFrame) -> DataFrame:
        """The same rows, counted by the job that first computes them."""
        self.observations.append(Observation())
        return rows.observe(self.observations[-1], f.count(f.lit(1)).alias("rows"))

    def table(self, name: str) -> DataFrame:
        """The live rows of a table."""
        files = self.tables.files(name)
        rows = self.spark.read.parquet(*files)
        gone_name = {"alternatives": "gone_queries", "subscriptions": "gone_targets"}[name]
        if not self.tables.files(gone_name):
            return rows
        gone = self.spark.read.parquet(*self.tables.files(gone_name))
        keys = ["tenant", "query"] if name == "alternatives" else ["target"]
        last = f.broadcast(gone.groupBy(*keys).agg(f.max("change").alias("gone")))
        same = [rows[key] == last[key] for key in keys]
        return rows.join(last, [*same, last["gone"] > rows["change"]], "left_anti")

    def paths(self, use: str | None = None) -> DataFrame:
        """Rows of PathMatch, of linear paths with lines that are used in this way, to be broadcast."""
        matches = self.path_match
        if use is not None:
            wanted = pa.array([path for path, uses in self.linear.items() if uses[use]], pa.int64())
            matches = matches.filter(pa.compute.is_in(matches.column("path"), wanted))
        return f.broadcast(self.spark.createDataFrame(matches))

    @property
    def range_paths(self) -> int:
        """How many linear paths have ranges."""
        return sum(uses["ranges"] > 0 for uses in self.linear.values())
