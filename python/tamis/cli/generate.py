"""`tamis generate docs|queries|transformations|stock`."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tamis.cli.progress import bar
from tamis.sources.dtd_file import read_dtd_file
from tamis.workload import (
    DocumentOptions,
    Dtd,
    Mix,
    Profile,
    QueryOptions,
    StockOptions,
    TransformationOptions,
    generate_documents,
    generate_queries,
    generate_transformations,
    stock_messages,
    stock_subscriptions,
)

SAMPLE = 1_000
"""Documents to sample for values, evenly spread."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `generate`."""
    commands = parser.add_subparsers(required=True, metavar="WHAT")

    command = commands.add_parser("docs", help="documents that follow a DTD, one file each")
    _add_shared(command, number=200, depth=6)
    _add_repeats(command)
    command.add_argument(
        "--repeats-of",
        action="append",
        default=[],
        type=_repeats_of,
        metavar="NAME=N",
        help="the same for one element",
    )
    command.add_argument("--output", required=True, type=Path, metavar="DIR")
    command.set_defaults(run=docs)

    command = commands.add_parser("queries", help="path queries that follow a DTD, one a line")
    _add_shared(command, number=1_000, depth=6)
    _add_repeats(command)
    command.add_argument(
        "--wildcard", "-W", type=_probability, default=0.2, metavar="P", help="of `*` at a step"
    )
    _add_descendant(command)
    command.add_argument("--duplicates", action="store_true", help="queries need not be distinct")
    command.add_argument("--predicates", "-P", type=int, default=0, metavar="N", help="tests per query")
    command.add_argument("--nested", "-NP", type=int, default=0, metavar="N", help="nested paths per query")
    command.add_argument(
        "--rules", type=int, default=0, metavar="N", help="conditions of validation rules per query"
    )
    command.add_argument(
        "--mix",
        type=_mix,
        default=Mix(),
        metavar="NAME=X,…",
        help="what is tested: weights of attribute, text and position; of tests on numbers, the share of "
        "equality; of equalities, the share that is quoted. Unless given: "
        "attribute=0.75,text=0.2,position=0.05,equality=0.9,quoted=0.5",
    )
    _add_output(command)
    command.set_defaults(run=queries)

    command = commands.add_parser(
        "transformations", help="for-where-return transformations that follow a DTD, one a line"
    )
    _add_shared(command, number=1_000, depth=2)
    command.add_argument(
        "--binding-depth", "-D1", type=int, default=2, metavar="N", help="of what is bound (default: 2)"
    )
    command.add_argument("--predicates", "-PP", type=int, default=1, metavar="N", help="default: 1")
    command.add_argument("--returns", "-RP", type=int, default=2, metavar="N", help="default: 2")
    command.add_argument("--ordered", action="store_true", help="with a second variable and `order by`")
    _add_descendant(command)
    _add_output(command)
    command.set_defaults(run=transformations)

    command = commands.add_parser(
        "stock", help="stock quotes and subscriptions with one equality and four bounds"
    )
    add_stock_arguments(command)
    command.add_argument("--output", required=True, type=Path, metavar="DIR")
    command.set_defaults(run=stock)


def _add_shared(command: argparse.ArgumentParser, *, number: int, depth: int) -> None:
    command.add_argument("--dtd", required=True, type=Path, metavar="FILE")
    command.add_argument("--number", "-Q", type=int, default=number, metavar="N", help=f"default: {number}")
    command.add_argument("--depth", "-D", type=int, default=depth, metavar="N", help=f"default: {depth}")
    command.add_argument(
        "--values",
        type=int,
        default=20,
        metavar="N",
        help="the most values an attribute takes (default: 20)",
    )
    command.add_argument(
        "--even", action="store_true", help="every attribute is there, and takes all of those values"
    )
    command.add_argument(
        "--values-from",
        type=Path,
        metavar="DIR",
        help="take the values that occur in these documents instead",
    )
    command.add_argument(
        "--root", action="append", default=[], metavar="NAME", help="default: the DTD's roots"
    )
    command.add_argument(
        "--seed",
        default="1",
        help="the same for documents and queries that are to fit each other (default: 1)",
    )


def _add_repeats(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--repeats",
        "-RP",
        type=int,
        default=3,
        metavar="N",
        help="of an element under one parent (default: 3)",
    )


def _add_descendant(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--descendant", "-DS", type=_probability, default=0.2, metavar="P", help="of `//` before a step"
    )


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")


def add_stock_arguments(command: argparse.ArgumentParser) -> None:
    """The size of the flat workload; `tamis bench stock` has the same."""
    command.add_argument("--subscriptions", type=int, default=1_000_000, metavar="N")
    command.add_argument("--messages", type=int, default=10_000, metavar="N")
    command.add_argument("--notifications", type=int, default=10_000, metavar="N", help="in all, about")
    command.add_argument("--seed", default="1")


def docs(options: argparse.Namespace) -> int:
    """`tamis generate docs`."""
    dtd = read_dtd_file(options.dtd)
    wanted = DocumentOptions(
        options.number, options.depth, options.repeats, dict(options.repeats_of), tuple(options.root)
    )
    options.output.mkdir(parents=True, exist_ok=True)
    width = len(str(options.number))
    with bar("documents") as progress:
        documents = generate_documents(
            dtd, _profile(dtd, options), wanted, seed=options.seed, progress=progress
        )
        for number, document in enumerate(documents, start=1):
            (options.output / f"{number:0{width}d}.xml").write_bytes(document)
    return 0


def queries(options: argparse.Namespace) -> int:
    """`tamis generate queries`."""
    dtd = read_dtd_file(options.dtd)
    wanted = QueryOptions(
        number=options.number,
        depth=options.depth,
        wildcard=options.wildcard,
        descendant=options.descendant,
        distinct=not options.duplicates,
        predicates=options.predicates,
        nested=options.nested,
        rules=options.rules,
        repeats=options.repeats,
        mix=options.mix,
        roots=tuple(options.root),
    )
    with bar("queries") as progress, _output(options.output) as file:
        _write(
            file, generate_queries(dtd, _profile(dtd, options), wanted, seed=options.seed, progress=progress)
        )
    return 0


def transformations(options: argparse.Namespace) -> int:
    """`tamis generate transformations`."""
    dtd = read_dtd_file(options.dtd)
    wanted = TransformationOptions(
        number=options.number,
        binding_depth=options.binding_depth,
        predicates=options.predicates,
        returns=options.returns,
        depth=options.depth,
        descendant=options.descendant,
        roots=tuple(options.root),
        ordered=options.ordered,
    )
    with bar("transformations") as progress, _output(options.output) as file:
        profile = _profile(dtd, options)
        _write(file, generate_transformations(dtd, profile, wanted, seed=options.seed, progress=progress))
    return 0


def stock(options: argparse.Namespace) -> int:
    """`tamis generate stock`."""
    wanted = StockOptions(options.subscriptions, options.messages, options.notifications)
    options.output.mkdir(parents=True, exist_ok=True)
    with bar("subscriptions") as progress, _output(options.output / "subscriptions.txt") as file:
        _write(file, stock_subscriptions(wanted, seed=options.seed, progress=progress))
    with _output(options.output / "messages.xml.txt") as file:
        _write(file, (message.decode() for message in stock_messages(wanted, seed=options.seed)))
    return 0


def sample(directory: Path) -> list[bytes]:
    """The documents of a directory, or as many as show what occurs in them."""
    paths = sorted(directory.glob("*.xml"))
    return [path.read_bytes() for path in paths[:: max(1, len(paths) // SAMPLE)]]


def _profile(dtd: Dtd, options: argparse.Namespace) -> Profile:
    if options.values_from is not None:
        return Profile.observed(sample(options.values_from))
    if options.even:
        return Profile.even(dtd, values=options.values)
    return Profile.drawn(dtd, seed=options.seed, values=options.values)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
    else:
        with path.open("w", encoding="utf-8") as file:
            yield file


def _write(file: TextIO, lines: Iterable[str]) -> None:
    file.writelines(f"{line}\n" for line in lines)


def _probability(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a probability")
    return value


def _repeats_of(text: str) -> tuple[str, int]:
    name, _, times = text.partition("=")
    try:
        return name, int(times)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"`{text}` is not NAME=N") from error


def _mix(text: str) -> Mix:
    try:
        parts = dict(part.split("=") for part in text.split(",") if part)
        return Mix(**{name.strip(): float(value) for name, value in parts.items()})
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"`{text}` is no mix: {error}") from error
