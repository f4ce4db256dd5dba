"""`tamis transform`: run the queries of a file on each document and print the outputs."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import tamis
from tamis.cli.inputs import add_input_arguments, read_documents, read_index
from tamis.cli.progress import bar
from tamis.sources.dtd_file import read_schema


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Queries and documents, and how outputs are printed."""
    add_input_arguments(command)
    command.add_argument(
        "--dtd", type=Path, metavar="FILE", help="the DTD of the documents; speeds up transformations"
    )
    command.add_argument("--json", action="store_true", help="one line of JSON each document and query")
    command.set_defaults(run=transform)


def transform(options: argparse.Namespace) -> int:
    """`tamis transform --queries FILE DOC…`."""
    index, refused = read_index(options)
    schema = read_schema(options.dtd)
    unreadable = False
    with bar("transforming") as report:
        for done, paths, contents, failures in read_documents(options.documents):
            unreadable |= bool(failures)
            for at, path in enumerate(paths):
                for row in _rows(index, path, contents[at].as_py(), failures.get(at), schema):
                    _print_row(row, options.json)
            report(done, len(options.documents))
    if refused and options.strict:
        return 2
    return 1 if unreadable else 0


def _rows(
    index: tamis.Index,
    path: Path,
    message: bytes | None,
    failure: OSError | None,
    schema: tamis.Schema | None,
) -> Iterator[dict[str, str | int]]:
    """A row for each matching query of a document, or its error."""
    if message is None:
        reason = "" if failure is None else failure.strerror
        yield {"document": str(path), "error": "no-file", "reason": str(reason)}
        return
    try:
        outputs = index.transform(message, schema=schema)
    except tamis.ReadError as error:
        yield {"document": str(path), "error": error.code, "reason": error.reason}
        return
    for output in outputs:
        row: dict[str, str | int] = {"document": str(path), "query": output.target}
        if output.payload is None:
            row |= {"error": str(output.code), "reason": str(output.reason)}
        else:
            row["output"] = output.payload.decode(errors="replace")
        yield row


def _print_row(row: dict[str, str | int], as_json: bool) -> None:
    if as_json:
        print(json.dumps(row, ensure_ascii=False))
        return
    head = "\t".join(str(row[name]) for name in ("document", "query") if name in row)
    if "error" in row:
        print(f"{head}\tERROR {row['error']}: {row['reason']}")
    else:
        print(f"{head}\n{row['output']}")
