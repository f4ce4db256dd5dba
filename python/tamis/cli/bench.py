"""`tamis bench filter`, `tamis bench stock` and `tamis bench data`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.bench import CACHE_BYTES, ROUNDS
from tamis.bench.files import read_documents, read_queries
from tamis.cli.generate import add_stock_arguments
from tamis.cli.progress import bar
from tamis.extras import require
from tamis.workload import StockOptions, stock_messages, stock_subscriptions

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
    add_shared_arguments(command)
    command.set_defaults(run=run_filter)

    command = commands.add_parser(
        "stock", help="stock quotes against subscriptions with one symbol and four bounds"
    )
    add_stock_arguments(command)
    add_shared_arguments(command)
    command.set_defaults(run=run_stock)

    command = commands.add_parser(
        "data", help="look-ups in local data against messages that carry the columns"
    )
    command.add_argument("--subscriptions", type=int, default=100_000, metavar="N", help="default: 100000")
    command.add_argument("--rows", type=int, default=1_000_000, metavar="N", help="default: 1000000")
    command.add_argument("--messages", type=int, default=2000, metavar="N", help="default: 2000")
    command.add_argument("--transformations", type=int, default=10_000, metavar="N", help="default: 10000")
    command.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"runs to take the median of (default: {ROUNDS})",
    )
    command.set_defaults(run=run_data)


def add_shared_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments that all measurements share."""
    command.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"runs to take the median of (default: {ROUNDS})",
    )
    command.add_argument(
        "--cache-bytes", type=int, default=CACHE_BYTES, metavar="N", help=f"default: {CACHE_BYTES}"
    )


def run_filter(options: argparse.Namespace) -> int:
    """`tamis bench filter --docs DIR --queries FILE`."""
    return _run(read_documents(options.docs), read_queries(options.queries), options, {})


def run_stock(options: argparse.Namespace) -> int:
    """`tamis bench stock`."""
    wanted = StockOptions(options.subscriptions, options.messages, options.notifications)
    with bar("subscriptions") as report:
        subscriptions = list(stock_subscriptions(wanted, seed=options.seed, progress=report))
    messages = list(stock_messages(wanted, seed=options.seed))
    return _run(messages, subscriptions, options, {"notifications": options.notifications})


def run_data(options: argparse.Namespace) -> int:
    """`tamis bench data`."""
    require("bench")
    from tamis.bench.data import DataSize, measure_data

    size = DataSize(options.subscriptions, options.rows, options.messages, options.transformations)
    result = measure_data(size, rounds=options.rounds)
    print("\n".join(f"{name:<20}{value:>10.3f}" for name, value in result.as_dict().items()))
    print(json.dumps(result.as_dict()))
    return 0


def _run(
    documents: Sequence[bytes], queries: Sequence[str], options: argparse.Namespace, more: dict[str, int]
) -> int:
    require("bench")
    from tamis.bench.measure import measure

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
        f"candidates a document, {result.settled / per_document:,.1f} settled and "
        f"{result.verified / per_document:,.1f} verified; {result.matches:,} matches in all",
        f"index {result.index_bytes / max(result.distinct, 1):.1f} bytes a distinct query, "
        f"query texts {result.text_bytes:,} bytes, caches {result.cache_bytes / (1 << 20):.1f} MiB",
    ]
