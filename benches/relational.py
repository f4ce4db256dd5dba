"""The relational engine beside the kernel, on Spark: the flat workload of seed 004 (5.1, tables 5.1 and 5.2).

Prints rows and ratios. Times are those of one run each after a warm one, on a quiet machine only.
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tamis
from tamis.relational.tables import Tables
from tamis.settings import load_settings
from tamis.spark import with_matches
from tamis.spark.relational import match
from tamis.spark.relational.matching import Counts
from tamis.spark.session import create_session
from tamis.workload.stock import StockOptions, stock_messages, stock_subscriptions

CHANGES = 1_000
SEED = "1"


def measure(options: StockOptions, plan: str) -> dict[str, Any]:
    """Build the tables, change them, and match all messages as one batch."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        queries = list(stock_subscriptions(options, seed=SEED))
        table = pa.table({"target": pa.array(range(len(queries)), pa.uint64()), "query": queries})
        index = tamis.Index()
        load, _ = timed(lambda: index.load(table))
        index.snapshot(place / "index")
        tables = Tables.create(place / "tables")
        build, _ = timed(lambda: tables.change(table))
        changed = table.slice(0, CHANGES // 2)
        change, _ = timed(lambda: tables.change(changed, list(range(CHANGES // 2, CHANGES))))
        written = sum(tables.changes[-1].rows.values())
        tables.change(table.slice(CHANGES // 2, CHANGES // 2))
        tables.compact()
        messages = list(stock_messages(options, seed=SEED))
        pq.write_table(pa.table({"message": pa.array(messages, pa.binary())}), place / "messages.parquet")
        spark = create_session(load_settings(None, {}))
        try:
            spark.sparkContext.setLogLevel("ERROR")
            return {
                "subscriptions": options.subscriptions,
                "load_s": load,
                "build_s": build,
                "change_per_build": change / build,
                "rows_per_change": written / CHANGES,
                **_matched(spark, place, index, tables, plan),
            }
        finally:
            spark.stop()


def _matched(
    spark: SparkSession, place: Path, index: tamis.Index, tables: Tables, plan: str
) -> dict[str, Any]:
    sent = spark.read.parquet(str(place / "messages.parquet")).repartition(2)
    counts = Counts()

    def by_kernel() -> Any:
        found: DataFrame = with_matches(sent, index, keep=[])
        return found.agg(f.sum(f.size("targets")), f.sum("candidates")).first()

    def by_joins() -> int:
        return match(sent, index, tables, keep=[], plan=plan, counts=counts).count()

    by_kernel()
    kernel, of_kernel = timed(by_kernel)
    by_joins()
    joins, rows = timed(by_joins)
    assert rows == of_kernel[0], (rows, of_kernel)
    return {
        "matches": rows,
        "kernel_s": kernel,
        plan + "_s": joins,
        "times_kernel": joins / kernel,
        "joined_per_candidate": counts.joined / of_kernel[1],
        "counts": str(counts),
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the work returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run(subscriptions: int, messages: int, notifications: int, plan: str) -> None:
    """Print one line of JSON."""
    print(json.dumps(measure(StockOptions(subscriptions, messages, notifications), plan)))
