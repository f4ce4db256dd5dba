"""`tamis match`: print which queries match each document."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import tamis
from tamis.cli.by_joins import by_joins
from tamis.cli.documents import print_error, read_document
from tamis.cli.inputs import Queries, add_input_arguments, envelope_of, exit_code
from tamis.cli.limits import limits_of
from tamis.cli.progress import bar
from tamis.model.printable import printable
from tamis.settings import SettingsError


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Queries and documents, and how matches are printed."""
    add_input_arguments(command)
    command.add_argument(
        "--show-query", action="store_true", help="one line per match, with the text of the query"
    )
    command.add_argument("--json", action="store_true", help="one line of JSON per document")
    command.add_argument(
        "--engine", choices=("kernel", "relational"), default="kernel", help="`relational`: by joins on Spark"
    )
    command.add_argument("--plan", metavar="NAME", help="of the relational engine (default: unroll)")
    command.set_defaults(run=match)


def match(options: argparse.Namespace) -> int:
    """`tamis match --queries FILE DOC…`."""
    queries = Queries(options)
    if options.plan is not None and options.engine != "relational":
        raise SettingsError("no-plan", "--plan is of --engine relational")
    answers = by_joins if options.engine == "relational" else _by_kernel
    failed = False
    with bar("matching") as report:
        found = answers(options, queries)
        for done, (name, matches) in enumerate(zip(options.documents, found, strict=True), start=1):
            if isinstance(matches, tamis.TamisError):
                failed = True
                print_error(name, matches, as_json=options.json)
            else:
                row = {"document": name, "matches": matches}
                _print_matches(row, queries.texts if options.show_query else None, options.json)
            report(done, len(options.documents))
    return exit_code(options, queries, failed)


def _by_kernel(options: argparse.Namespace, queries: Queries) -> Iterator[list[int] | tamis.TamisError]:
    """For each document, the numbers of the queries that match it, or why it is refused."""
    limits, envelope = limits_of(options), envelope_of(options)
    for name in options.documents:
        try:
            message = read_document(name, limits.document)
            yield _match(queries, name, message, envelope, limits)
        except tamis.TamisError as error:
            yield error


def _match(
    queries: Queries, document: str, message: bytes, envelope: tamis.Envelope | None, limits: tamis.Limits
) -> list[int]:
    """The numbers of the queries that match; those that fail are reported."""
    try:
        return queries.index.match(message, envelope=envelope, limits=limits)
    except tamis.MatchError as error:
        for number in error.failed:
            reason = f"{error.code}: {error.cause} on {document}"
            print(f"{queries.place(number)}: {reason}", file=sys.stderr)
        return error.targets


def _print_matches(row: dict[str, Any], texts: dict[int, str] | None, as_json: bool) -> None:
    """`texts`: of the queries, if they are to be printed."""
    name, matches = row["document"], row["matches"]
    if as_json:
        shown = row if texts is None else row | {"queries": [texts[number] for number in matches]}
        print(json.dumps(shown, ensure_ascii=False))
    elif texts is None or not matches:
        print(f"{name}\t{' '.join(map(str, matches))}")
    else:
        for number in matches:
            print(f"{name}\t{number}\t{printable(texts[number])}")
