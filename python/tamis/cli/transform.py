"""`tamis transform`: run queries on each document and print the outputs."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tamis
from tamis.cli.documents import print_error, read_document
from tamis.cli.inputs import Queries, add_input_arguments, envelope_of, exit_code
from tamis.cli.limits import limits_of
from tamis.cli.progress import bar
from tamis.sources.dtd_file import read_schema


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Queries and documents, and how outputs are printed."""
    add_input_arguments(command)
    command.add_argument(
        "--dtd", type=Path, metavar="FILE", help="the DTD of the documents; speeds up transformations"
    )
    command.add_argument("--json", action="store_true", help="one line of JSON per document and query")
    command.set_defaults(run=transform)


def transform(options: argparse.Namespace) -> int:
    """`tamis transform --queries FILE DOC…`."""
    queries = Queries(options)
    schema = read_schema(options.dtd)
    limits, envelope = limits_of(options), envelope_of(options)
    failed = False
    with bar("transforming") as report:
        for done, name in enumerate(options.documents, start=1):
            try:
                message = read_document(name, limits.document)
                outputs = queries.index.transform(message, envelope=envelope, limits=limits, schema=schema)
            except tamis.TamisError as error:
                failed = True
                print_error(name, error, as_json=options.json)
            else:
                for row in _rows(name, outputs):
                    _print_row(row, options.json)
            report(done, len(options.documents))
    return exit_code(options, queries, failed)


def _rows(document: str, outputs: list[tamis.Output]) -> Iterator[dict[str, Any]]:
    """A row for each matching query of a document."""
    for output in outputs:
        row: dict[str, Any] = {"document": document, "query": output.target}
        if output.payload is None:
            yield row | {"error": output.code, "reason": output.reason}
        else:
            yield row | {"output": output.payload.decode(errors="replace")}


def _print_row(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(row, ensure_ascii=False))
        return
    head = f"{row['document']}\t{row['query']}"
    if "error" in row:
        print(f"{head}\tERROR {row['error']}: {row['reason']}")
    else:
        print(f"{head}\n{row['output']}")
