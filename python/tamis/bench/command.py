"""`tamis bench filter`, `transform`, `stock`, `spark`, `latency` and `serve`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tamis.bench import CACHE_BYTES, ROUNDS
from tamis.bench.sources import NoDataError, read_documents, read_queries
from tamis.dtd_file import read_dtd_file
from tamis.progress import bar
from tamis.workload import StockOptions, stock_messages, stock_subscriptions
from tamis.workload.command import add_stock_arguments
from tamis.workload.error import WorkloadError

if TYPE_CHECKING:
    from tamis.bench.measure import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `bench`."""
    commands = parser.add_subparsers(required=True, metavar="WHAT")

    command = commands.add_parser("filter", help="documents of a directory against the queries of a file")
    command.add_argument(
        "--docs", required=True, type=Path, metavar="DIR", help="its files *.xml, in name order"
    )
    command.add_argument("--queries", required=True, type=Path, metavar="FILE", help="one query a line")
    _add_shared(command)
    command.set_defaults(run=run_filter)

    command = commands.add_parser(
        "transform", help="documents of a directory against the transformations of a file"
    )
    command.add_argument(
        "--docs", required=True, type=Path, metavar="DIR", help="its files *.xml, in name order"
    )
    command.add_argument(
        "--queries", required=True, type=Path, metavar="FILE", help="one transformation a line"
    )
    command.add_argument("--dtd", type=Path, metavar="FILE", help="plans also by this DTD")
    command.add_argument("--saxon", action="store_true", help="beside Saxon, one by one; it takes a while")
    _add_shared(command)
    command.set_defaults(run=run_transform)

    command = commands.add_parser(
        "stock", help="stock quotes against subscriptions with one symbol and four bounds"
    )
    add_stock_arguments(command)
    _add_shared(command)
    command.set_defaults(run=run_stock)

    command = commands.add_parser("spark", help="matching on Spark beside a job that only moves the messages")
    command.add_argument("--queries", type=int, default=150_000, metavar="N", help="150000 unless given")
    command.add_argument("--megabytes", type=int, default=200, metavar="N", help="200 unless given")
    command.add_argument(
        "--subscriptions",
        type=int,
        default=1_000_000,
        metavar="N",
        help="to see memory; 1000000 unless given",
    )
    command.add_argument("--rounds", type=int, default=5, metavar="N", help="5 unless given")
    command.set_defaults(run=run_spark)

    command = commands.add_parser("latency", help="from the inbox to a delivery, and until a job has started")
    command.add_argument("--rate", type=int, default=100, metavar="N", help="messages a second; 100")
    command.add_argument("--seconds", type=int, default=60, metavar="N", help="60 unless given")
    command.add_argument(
        "--subscriptions", type=int, default=1_000_000, metavar="N", help="1000000 unless given"
    )
    command.add_argument("--starts", type=int, default=3, metavar="N", help="3 unless given")
    command.set_defaults(run=run_latency)

    command = commands.add_parser("serve", help="the service: its highest rate, and what one waits for at it")
    command.add_argument(
        "--subscriptions", type=int, default=50_000, metavar="N", help="50000 unless given, all distinct"
    )
    command.add_argument("--subscribers", type=int, default=20, metavar="N", help="who share them; 20")
    command.add_argument("--seconds", type=int, default=60, metavar="N", help="60 unless given")
    command.add_argument("--rate", type=int, metavar="N", help="messages a second, instead of the highest")
    command.add_argument("--kill", action="store_true", help="then kill it hard, at half the rate")
    command.set_defaults(run=run_serve)


def _add_shared(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"runs to take the median of; {ROUNDS} unless given",
    )
    command.add_argument(
        "--cache-bytes", type=int, default=CACHE_BYTES, metavar="N", help=f"{CACHE_BYTES} unless given"
    )


def run_filter(options: argparse.Namespace) -> int:
    """`tamis bench filter --docs DIR --queries FILE`."""
    return _run(read_documents(options.docs), read_queries(options.queries), options, {})


def run_transform(options: argparse.Namespace) -> int:
    """`tamis bench transform --docs DIR --queries FILE`."""
    documents, queries = read_documents(options.docs), read_queries(options.queries)
    dtd = None if options.dtd is None else read_dtd_file(options.dtd)
    try:
        from tamis.bench import transform

        with bar("rounds") as report:
            result, _ = transform.measure(
                documents,
                queries,
                dtd=dtd,
                with_saxon=options.saxon,
                rounds=options.rounds,
                cache_bytes=options.cache_bytes,
                report=report,
            )
    except ImportError as error:
        advice = f"measuring needs {error.name}: pip install 'tamis[bench]'"
        raise WorkloadError("no-bench", advice) from error
    print("\n".join(transform.lines(result)))
    print(json.dumps(result.as_dict()))
    return 0


def run_stock(options: argparse.Namespace) -> int:
    """`tamis bench stock`."""
    wanted = StockOptions(options.subscriptions, options.messages, options.notifications)
    with bar("subscriptions") as report:
        subscriptions = list(stock_subscriptions(wanted, seed=options.seed, progress=report))
    messages = list(stock_messages(wanted, seed=options.seed))
    return _run(messages, subscriptions, options, {"notifications": options.notifications})


def run_spark(options: argparse.Namespace) -> int:
    """`tamis bench spark`."""
    try:
        from tamis.bench import spark
        from tamis.bench.spark_workload import SparkWorkload
    except ImportError as error:
        advice = f"measuring needs {error.name}: pip install 'tamis[bench,spark]'"
        raise WorkloadError("no-spark", advice) from error
    workload = SparkWorkload(
        queries=options.queries, megabytes=options.megabytes, subscriptions=options.subscriptions
    )
    try:
        with bar("Spark") as report:
            result = spark.measure(workload, rounds=options.rounds, report=report)
    except NoDataError as error:
        raise WorkloadError("no-data", str(error)) from error
    Console(width=None if sys.stdout.isatty() else 120).print(spark.table(result))
    print(json.dumps(result.as_dict()))
    return 1 if result.wrong else 0


def run_latency(options: argparse.Namespace) -> int:
    """`tamis bench latency`."""
    from tamis.bench import latency

    workload = latency.LatencyWorkload(options.rate, options.seconds, options.subscriptions, options.starts)
    with bar("latency") as report:
        result = latency.measure(workload, report=report)
    Console(width=None if sys.stdout.isatty() else 120).print(latency.table(result))
    print(json.dumps(result.as_dict()))
    return 1 if result.wrong else 0


def run_serve(options: argparse.Namespace) -> int:
    """`tamis bench serve`."""
    try:
        from tamis.bench import serve
    except ImportError as error:
        advice = f"measuring needs {error.name}: pip install 'tamis[bench,serve]'"
        raise WorkloadError("no-service", advice) from error
    workload = serve.ServeWorkload(
        options.subscriptions, options.subscribers, options.seconds, options.rate, options.kill
    )
    with bar("serve") as report:
        result = serve.measure(workload, report=report, say=lambda line: print(line, flush=True))
    Console(width=None if sys.stdout.isatty() else 120).print(serve.table(result))
    print(json.dumps(result.as_dict()))
    return 1 if result.wrong else 0


def _run(
    documents: Sequence[bytes], queries: Sequence[str], options: argparse.Namespace, more: dict[str, int]
) -> int:
    try:
        from tamis.bench.measure import measure
    except ImportError as error:
        raise WorkloadError("no-lxml", f"measuring needs {error.name}: pip install 'tamis[bench]'") from error
    with bar("rounds") as report:
        result, _ = measure(
            documents, queries, rounds=options.rounds, cache_bytes=options.cache_bytes, report=report
        )
    print("\n".join(lines(result)))
    print(json.dumps(result.as_dict() | more))
    return 0


def lines(result: "Result") -> list[str]:
    """For people."""
    per_document = max(result.documents, 1)
    times = [
        f"{name:<8}{getattr(result, f'{name}_us'):>10.2f} µs a document  {result.ratio(name):>6.2f} × expat"
        for name in ("cold", "unseen", "warm", "read", "expat")
    ]
    return [
        f"{result.queries:,} queries ({result.distinct:,} distinct, {result.refused:,} refused), "
        f"{result.documents:,} documents of {result.bytes / per_document:,.0f} bytes on average",
        f"loaded in {result.load_s:.2f} s; lxml compiles them in {result.lxml_compile_s:.2f} s "
        f"({result.lxml_compile_s / result.load_s:.1f} ×); opened from files in {result.open_s * 1e3:.1f} ms",
        *times,
        f"{result.matches / per_document:,.1f} matches and {result.candidates / per_document:,.1f} "
        f"candidates a document; {result.matches:,} matches in all",
        f"index {result.index_bytes / max(result.distinct, 1):.1f} bytes a distinct query, "
        f"query texts {result.text_bytes:,} bytes, caches {result.cache_bytes / (1 << 20):.1f} MiB",
    ]
