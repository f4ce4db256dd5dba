"""The cost of matching on Spark, compared with the same job whose workers do nothing."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

import tamis
from benches.checks import Check
from benches.spark import jobs
from benches.spark.workload import FILES, SparkWorkload, saved, targets
from tamis.cli.progress import bar
from tamis.model.progress import Report
from tamis.spark import match, with_matches

CORES = 2
ROUNDS = 5
WARM_UP = 3
"""Rounds before those that count: Spark compiles what it has met often."""

RIVAL_QUERIES = 1_000
RIVAL_MESSAGES = {"lxml": 1_000, "xpath_boolean": 50}
"""The number of messages of each, which take seconds."""


@dataclass(frozen=True)
class SparkResult:
    """The figures. Times with `_s` are medians for all messages, unless it says otherwise."""

    messages: int
    bytes: int
    queries: int
    matches: int
    """Over the documents, once; there are `repeats` of them."""
    repeats: int
    identity_s: float
    arrays_s: float
    """`with_matches`: one row for each message."""
    rows_s: float
    """`match`: one row for each message and target."""
    arrays_ratio: float
    """To identity, the median of the rounds' ratios; so is the next."""
    rows_ratio: float
    identity_worker_s: float
    """Processor time of Python workers, added up."""
    kernel_s: float
    outside_s: float
    """Processor time of Python workers outside the kernel."""
    outside_ratio: float
    own_s: float
    """Of it, what is not Spark's own reading and writing of batches."""
    own_ratio: float
    """To identity's processor time, which is nothing but reading and writing."""
    identity_elapsed_s: float
    """Time of tasks in Python workers, waiting for Spark included; so are the next three."""
    kernel_elapsed_s: float
    outside_elapsed_s: float
    outside_elapsed_ratio: float
    dense_messages: int
    dense_matches: int
    dense_s: float
    dense_ratio: float
    """To identity of the same messages."""
    lxml_us: float
    """For one query and one message; so are the next two."""
    xpath_boolean_us: float
    tamis_us: float
    lxml_factor: float
    xpath_boolean_factor: float
    subscriptions: int
    index_bytes: int
    worker_private_bytes: int
    """Private bytes of a worker with these subscriptions, compared with one that has none."""
    worker_shared_bytes: int
    """Bytes that it shares with other workers, including the index."""
    spark_version: str
    wrong: tuple[str, ...] = ()
    """Answers other than expected."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    """A Spark of two cores on loopback, with this Python's workers."""
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("tamis benches spark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    try:
        yield started
    finally:
        started.stop()


def measure(workload: SparkWorkload, *, rounds: int = ROUNDS, report: Report | None = None) -> SparkResult:
    """All of it, in one session."""
    steps = _Steps(report, total=WARM_UP + rounds + 6)
    documents = workload.messages()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload.write_messages(folder / "messages")
        queries = workload.selective()
        index = saved(queries, documents, folder / "index")
        steps.done()
        dense = saved(workload.dense_queries(), documents, folder / "dense")
        steps.done()
        with session(folder) as spark:
            # First, while the workers have not allocated memory.
            figures = _memory(spark, workload, folder, steps)
            df = spark.read.parquet(str(folder / "messages"))
            part = spark.read.parquet(str(folder / "messages" / "0.parquet"))
            matches = len(targets(index, documents))
            repeats = workload.repeats * FILES
            wrong = list(_wrong_counts(df, index, matches * repeats))
            figures |= _rounds(spark, df, index, rounds, steps)
            figures |= _dense(spark, part, dense, wrong, len(targets(dense, documents)) * workload.repeats)
            steps.done()
            # The test of a thousand XPaths is too long a method for Java.
            spark.conf.set("spark.sql.codegen.wholeStage", "false")
            figures |= _rivals(part, index, queries, figures["arrays_s"], documents, repeats, wrong)
            steps.done()
    return SparkResult(
        messages=len(documents) * repeats,
        bytes=sum(map(len, documents)) * repeats,
        queries=len(queries),
        matches=matches,
        repeats=repeats,
        spark_version=pyspark.__version__,
        wrong=tuple(wrong),
        **figures,
    )


class _Steps:
    """Progress, a step at a time."""

    def __init__(self, report: Report | None, total: int) -> None:
        self._report = report or (lambda _done, _total: None)
        self._done, self._total = 0, total
        self._report(0, total)

    def done(self) -> None:
        self._done += 1
        self._report(self._done, self._total)


def _wrong_counts(df: DataFrame, index: tamis.Index, expected: int) -> Iterator[str]:
    rows = match(df, index).where("error IS NULL").count()
    if rows != expected:
        yield f"match gives {rows} rows where {expected} are expected"
    arrays = with_matches(df, index).selectExpr("sum(size(targets)) AS n", "count(error) AS bad").collect()[0]
    if (arrays.n, arrays.bad) != (expected, 0):
        yield f"with_matches gives {arrays.n} targets and {arrays.bad} errors, not {expected} and 0"


def _seconds(df: DataFrame) -> float:
    """How long it takes to make all rows and keep none."""
    start = perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return perf_counter() - start


def _rounds(
    spark: SparkSession, df: DataFrame, index: tamis.Index, rounds: int, steps: _Steps
) -> dict[str, Any]:
    """Identity and matching in turns; medians."""
    taken: dict[str, list[float]] = {}

    def note(**values: float) -> None:
        for name, value in values.items():
            taken.setdefault(name, []).append(value)

    for number in range(WARM_UP + rounds):
        if number == WARM_UP:
            taken.clear()
        idle, busy = jobs.Clocks.of(spark), jobs.Clocks.of(spark)
        identity_s = _seconds(jobs.identity(df, idle))
        arrays_s = _seconds(with_matches(df, index))
        rows_s = _seconds(match(df, index))
        _seconds(jobs.clocked(df, index, busy))
        outside_s = busy.worker.value - busy.kernel.value
        note(identity_s=identity_s, arrays_s=arrays_s, rows_s=rows_s)
        note(arrays_ratio=arrays_s / identity_s, rows_ratio=rows_s / identity_s)
        note(identity_worker_s=idle.worker.value, kernel_s=busy.kernel.value, outside_s=outside_s)
        own_s = outside_s - busy.spark.value
        note(outside_ratio=outside_s / idle.worker.value, own_s=own_s, own_ratio=own_s / idle.worker.value)
        elapsed_s = busy.elapsed.value - busy.kernel_elapsed.value
        note(identity_elapsed_s=idle.elapsed.value, kernel_elapsed_s=busy.kernel_elapsed.value)
        note(outside_elapsed_s=elapsed_s, outside_elapsed_ratio=elapsed_s / idle.elapsed.value)
        steps.done()
    return {name: median(values) for name, values in taken.items()}


def _dense(
    spark: SparkSession, part: DataFrame, index: tamis.Index, wrong: list[str], expected: int
) -> dict[str, Any]:
    """Thousands of targets a message, as an array column."""
    clocks = jobs.Clocks.of(spark)
    idle = median(_seconds(jobs.identity(part, clocks)) for _ in range(3))
    seconds = median(_seconds(with_matches(part, index)) for _ in range(3))
    counted = with_matches(part, index).selectExpr("count(*) AS n", "sum(size(targets)) AS m").collect()[0]
    if counted.m != expected:
        wrong.append(f"{counted.m} dense matches where {expected} are expected")
    return {
        "dense_messages": counted.n,
        "dense_matches": counted.m,
        "dense_s": seconds,
        "dense_ratio": seconds / idle,
    }


def _rivals(
    part: DataFrame,
    index: tamis.Index,
    queries: Sequence[str],
    arrays_s: float,
    documents: Sequence[bytes],
    repeats: int,
    wrong: list[str],
) -> dict[str, Any]:
    """The same question asked otherwise: fewer queries, fewer messages, and the time for one of each."""
    step = max(1, len(queries) // RIVAL_QUERIES)
    lines = set(range(1, len(queries) + 1, step))
    asked = [queries[line - 1] for line in sorted(lines)]
    tamis_us = arrays_s / (len(documents) * repeats * len(queries)) * 1e6
    figures: dict[str, Any] = {"tamis_us": tamis_us}
    ways: dict[str, Callable[[DataFrame, Sequence[str]], DataFrame]] = {
        "lxml": jobs.with_lxml,
        "xpath_boolean": jobs.with_xpath_boolean,
    }
    for name, way in ways.items():
        number = min(RIVAL_MESSAGES[name], part.count())
        messages = part.where(f"id < {number}").repartition(CORES).cache()
        messages.count()
        expected = sum(
            len(lines.intersection(index.match(documents[place % len(documents)]))) for place in range(number)
        )
        found = way(messages, asked).groupBy().sum("matches").collect()[0][0]
        if found != expected:
            wrong.append(f"{name} finds {found} matches where tamis finds {expected}")
        each = _seconds(way(messages, asked)) / (number * len(asked)) * 1e6
        figures |= {f"{name}_us": each, f"{name}_factor": each / tamis_us}
        messages.unpersist()
    return figures


def _memory(spark: SparkSession, workload: SparkWorkload, folder: Path, steps: _Steps) -> dict[str, Any]:
    """The memory of a worker with many subscriptions, while another worker has them too."""
    messages, subscriptions = workload.stock()
    index = saved(subscriptions, messages, folder / "stock")
    steps.done()
    table = pa.table({"message": pa.array(messages, pa.binary())})
    pq.write_table(table, folder / "stock.parquet")
    df = spark.read.parquet(str(folder / "stock.parquet")).repartition(CORES)
    # Workers that are kept: at first they open the index, then all have it.
    first = {row.process: row.before for row in jobs.memory(df, index).collect()}
    again = jobs.memory(df, index).collect()
    steps.done()
    return {
        "subscriptions": len(subscriptions),
        "index_bytes": index.stats().index_bytes,
        "worker_private_bytes": max(row.private - first.get(row.process, row.before) for row in again),
        "worker_shared_bytes": max(row.shared for row in again),
    }


def run(run: Mapping[str, Any], *, rounds: int) -> tuple[dict[str, Any], list[Check], list[str]]:
    """A run of a workload's file: figures, bars, and what is wrong."""
    with bar(run["name"]) as report:
        result = measure(SparkWorkload(**run["spark"]), rounds=rounds, report=report)
    problems = list(result.wrong)
    if result.matches != run["matches"]:
        problems.append(f"{result.matches} matches where {run['matches']} are expected")
    named = {"arrays": "an array a message, × identity", "rows": "a row a match, × identity"}
    named["outside_elapsed"] = "worker's time outside the kernel, × identity's"
    named["outside"] = "worker's processor time outside the kernel, × identity's"
    named["own"] = "of it not Spark's reading and writing, × identity's"
    bars = run.get("bars", {})
    checks = [
        Check(named[name], getattr(result, f"{name}_ratio"), bars[name]) for name in named if name in bars
    ]
    return result.as_dict(), checks, problems


def table(result: SparkResult) -> Table:
    """The result as a table."""
    about = (
        f"{result.messages:,} messages, {result.bytes / 1e6:,.0f} MB, {result.queries:,} queries, "
        f"{result.matches * result.repeats / result.messages:.1f} matches a message, "
        f"Spark {result.spark_version} on {CORES} cores"
    )
    made = Table("", "seconds", "× identity", "", title=about, title_justify="left")
    made.add_row("identity mapInArrow", f"{result.identity_s:.2f}", "1", _rate(result, result.identity_s))
    made.add_row(
        "with_matches, an array a message",
        f"{result.arrays_s:.2f}",
        f"{result.arrays_ratio:.2f}",
        _rate(result, result.arrays_s),
    )
    made.add_row(
        "match, a row a match",
        f"{result.rows_s:.2f}",
        f"{result.rows_ratio:.2f}",
        _rate(result, result.rows_s),
    )
    made.add_section()
    made.add_row("processor time of workers, identity", f"{result.identity_worker_s:.2f}", "1", "")
    made.add_row("in the kernel", f"{result.kernel_s:.2f}", "", "")
    made.add_row("outside the kernel", f"{result.outside_s:.2f}", f"{result.outside_ratio:.2f}", "")
    made.add_row(
        "of which not Spark's reading and writing", f"{result.own_s:.3f}", f"{result.own_ratio:.2f}", ""
    )
    made.add_row(
        "elapsed outside the kernel, with waiting",
        f"{result.outside_elapsed_s:.2f}",
        f"{result.outside_elapsed_ratio:.2f}",
        "",
    )
    made.add_section()
    dense = f"{result.dense_matches / max(result.dense_messages, 1):,.0f} matches a message, "
    dense += f"{result.dense_matches / result.dense_s / 1e6:.1f} million matches a second"
    made.add_row("dense, an array a message", f"{result.dense_s:.2f}", f"{result.dense_ratio:.2f}", dense)
    made.add_section()
    for name in RIVAL_MESSAGES:
        each, factor = getattr(result, f"{name}_us"), getattr(result, f"{name}_factor")
        made.add_row(f"{name}, a query and a message", "", "", f"{each:.2f} µs, {factor:,.0f} × tamis")
    made.add_row("tamis, a query and a message", "", "", f"{result.tamis_us * 1e3:.3f} ns")
    made.add_section()
    memory = (
        f"{result.worker_private_bytes / 1e6:.1f} MB its own, {result.worker_shared_bytes / 1e6:.1f} shared"
    )
    made.add_row(f"a worker with {result.subscriptions:,} subscriptions", "", "", memory)
    return made


def _rate(result: SparkResult, seconds: float) -> str:
    return f"{result.messages / seconds:,.0f} messages/s"
