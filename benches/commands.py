"""`python -m benches transform|spark|latency|start|serve|network`: one measurement by hand."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from benches import network, shards, transform
from benches.running import latency, serve, start
from benches.sources import NoDataError
from benches.spark import measure as spark
from benches.spark.workload import SparkWorkload
from tamis.bench.files import read_documents, read_queries
from tamis.cli.bench import add_shared_arguments
from tamis.cli.progress import bar
from tamis.sources.dtd_file import read_dtd_file
from tamis.workload.error import WorkloadError


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands, and their flags."""
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
    add_shared_arguments(command)
    command.set_defaults(run=run_transform)

    command = commands.add_parser("shards", help="stock subscriptions in shards beside one shard")
    command.add_argument("--subscriptions", type=int, default=1_000_000, metavar="N", help="1000000")
    command.add_argument("--shards", type=int, default=200, metavar="N", help="200 unless given")
    command.add_argument("--messages", type=int, default=5_000, metavar="N", help="5000 unless given")
    command.add_argument("--rounds", type=int, default=5, metavar="N", help="5 unless given")
    command.set_defaults(run=run_shards)

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

    command = commands.add_parser(
        "start", help="start and latency of the job beside a bare stream of PySpark"
    )
    command.add_argument("--starts", type=int, default=5, metavar="N", help="5 unless given")
    command.add_argument("--single", type=int, default=30, metavar="N", help="messages one at a time; 30")
    command.add_argument("--rate", type=int, default=100, metavar="N", help="messages a second; 100")
    command.add_argument("--seconds", type=int, default=30, metavar="N", help="30 unless given")
    command.set_defaults(run=run_start)

    command = commands.add_parser("serve", help="the service: its highest rate, and what one waits for at it")
    command.add_argument(
        "--subscriptions", type=int, default=50_000, metavar="N", help="50000 unless given, all distinct"
    )
    command.add_argument("--subscribers", type=int, default=20, metavar="N", help="who share them; 20")
    command.add_argument("--seconds", type=int, default=60, metavar="N", help="60 unless given")
    command.add_argument("--rate", type=int, metavar="N", help="messages a second, instead of the highest")
    command.add_argument("--kill", action="store_true", help="then kill it hard, at half the rate")
    command.set_defaults(run=run_serve)

    command = commands.add_parser("network", help="what crosses a network, and what routes and changes cost")
    command.add_argument("--queries", type=int, default=100_000, metavar="N", help="of the links; 100000")
    command.add_argument("--routes", type=int, default=1_000_000, metavar="N", help="that change; 1000000")
    command.add_argument("--regional", type=int, default=200, metavar="N", help="queries of each broker; 200")
    command.add_argument("--messages", type=int, default=2_000, metavar="N", help="2000 unless given")
    command.set_defaults(run=run_network)


def run_transform(options: argparse.Namespace) -> int:
    """`python -m benches transform --docs DIR --queries FILE`."""
    with bar("rounds") as report:
        result, _ = transform.measure(
            read_documents(options.docs),
            read_queries(options.queries),
            dtd=None if options.dtd is None else read_dtd_file(options.dtd),
            with_saxon=options.saxon,
            rounds=options.rounds,
            cache_bytes=options.cache_bytes,
            report=report,
        )
    print("\n".join(transform.lines(result)))
    print(json.dumps(result.as_dict()))
    return 0


def run_shards(options: argparse.Namespace) -> int:
    """`python -m benches shards`."""
    shards.report(options.subscriptions, options.shards, options.messages, options.rounds)
    return 0


def run_spark(options: argparse.Namespace) -> int:
    """`python -m benches spark`."""
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
    """`python -m benches latency`."""
    workload = latency.LatencyWorkload(options.rate, options.seconds, options.subscriptions, options.starts)
    with bar("latency") as report:
        result = latency.measure(workload, report=report)
    Console(width=None if sys.stdout.isatty() else 120).print(latency.table(result))
    print(json.dumps(result.as_dict()))
    return 1 if result.wrong else 0


def run_start(options: argparse.Namespace) -> int:
    """`python -m benches start`."""
    workload = start.StartWorkload(options.starts, options.single, options.rate, options.seconds)
    with bar("start") as report:
        result = start.measure(workload, report=report)
    Console(width=None if sys.stdout.isatty() else 120).print(start.table(result))
    print(json.dumps(result.as_dict()))
    return 1 if result.wrong else 0


def run_network(options: argparse.Namespace) -> int:
    """`python -m benches network`."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    figures = network.measure(options.regional, options.messages, options.queries, options.routes)
    console.print(network.table(figures))
    print(json.dumps({name: value for name, value, _ in figures}))
    return 0


def run_serve(options: argparse.Namespace) -> int:
    """`python -m benches serve`."""
    workload = serve.ServeWorkload(
        options.subscriptions, options.subscribers, options.seconds, options.rate, options.kill
    )
    with bar("serve") as report:
        result = serve.measure(workload, report=report, say=lambda line: print(line, flush=True))
    Console(width=None if sys.stdout.isatty() else 120).print(serve.table(result))
    print(json.dumps(result.as_dict()))
    return 1 if result.wrong else 0
