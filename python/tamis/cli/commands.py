"""The command line, `tamis`."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from tamis.cli import bench, dead_letters, exchange, run, serve, subscriptions
from tamis.cli import generate as workload
from tamis.cli import status as status_command
from tamis.cli import tokens as tokens_command
from tamis.cli.namespaces import read_namespaces
from tamis.cli.progress import bar
from tamis.errors import marked
from tamis.sources.dtd_file import read_schema

BATCH_BYTES = 16 << 20
"""Documents are matched so many bytes at a time: one crossing into the kernel each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except tamis.TamisError as error:
        print(f"tamis: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"tamis: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tamis", description=tamis.__doc__)
    parser.add_argument("--version", action="version", version=f"tamis {tamis.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("check", help="is this a query? print its canonical form")
    command.add_argument("query")
    _add_namespaces(command)
    command.set_defaults(run=check)

    command = commands.add_parser("match", help="which queries of a file match each document?")
    command.add_argument("--queries", required=True, type=Path, metavar="FILE", help="one query per line")
    command.add_argument("--strict", action="store_true", help="exit with 2 if a query is refused")
    command.add_argument("documents", nargs="+", type=Path, metavar="DOC")
    _add_namespaces(command)
    command.set_defaults(run=match)

    command = commands.add_parser("transform", help="what do the queries of a file make of each document?")
    command.add_argument("--queries", required=True, type=Path, metavar="FILE", help="one query per line")
    command.add_argument("--strict", action="store_true", help="exit with 2 if a query is refused")
    command.add_argument("--dtd", type=Path, metavar="FILE", help="what documents are expected to conform to")
    command.add_argument("--json", action="store_true", help="a line of JSON for each document and query")
    command.add_argument("documents", nargs="+", type=Path, metavar="DOC")
    _add_namespaces(command)
    command.set_defaults(run=transform)

    command = commands.add_parser("explain", help="why does a query match a document, or why not?")
    command.add_argument("query")
    command.add_argument("document", type=Path, metavar="DOC")
    command.add_argument("--dtd", type=Path, metavar="FILE", help="what documents are expected to conform to")
    _add_namespaces(command)
    command.set_defaults(run=explain)

    subscriptions.add_arguments(
        commands.add_parser("subscriptions", help="the catalog: who wants which messages?")
    )
    run.add_arguments(commands.add_parser("run", help="run the job: messages in, deliveries out"))
    status_command.add_arguments(commands.add_parser("status", help="how is the job doing?"))
    dead_letters.add_arguments(
        commands.add_parser("dead-letters", help="which messages were refused, and why? try them again")
    )
    serve.add_arguments(commands.add_parser("serve", help="run the service: subscribe, publish, receive"))
    exchange.add_publish_arguments(commands.add_parser("publish", help="send messages to a service"))
    exchange.add_receive_arguments(commands.add_parser("receive", help="deliveries of a service"))
    tokens_command.add_arguments(commands.add_parser("tokens", help="who may use the service?"))
    workload.add_arguments(
        commands.add_parser("generate", help="documents and queries to try and measure with")
    )
    bench.add_arguments(
        commands.add_parser("bench", help="what does filtering cost, beside parsing with expat?")
    )
    return parser


def _add_namespaces(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--namespaces", type=read_namespaces, metavar="FILE", help='TOML, one line `prefix = "uri"` for each'
    )


def check(options: argparse.Namespace) -> int:
    """`tamis check QUERY`."""
    try:
        print(tamis.check(options.query, options.namespaces).canonical)
    except tamis.QueryError as error:
        print(f"{error.line}:{error.column}: {error.reason}")
        print(marked(options.query, error.line, error.column))
        return 1
    return 0


def match(options: argparse.Namespace) -> int:
    """`tamis match --queries FILE DOC…`."""
    index, refused = _index(options)
    unreadable = False
    with bar("matching") as report:
        for done, paths, contents, failures in _read(options.documents):
            matches = index.match_batch(contents)
            targets, errors = index.targets(matches), matches.select(["code", "reason"]).to_pylist()
            for at, (path, row) in enumerate(zip(paths, errors, strict=True)):
                if at in failures:
                    unreadable = True
                    print(f"{path}\tERROR no-file: {failures[at].strerror}")
                elif row["code"] is not None:
                    print(f"{path}\tERROR {row['code']}: {row['reason']}")
                else:
                    print(f"{path}\t{' '.join(map(str, targets[at].as_py()))}")
            report(done, len(options.documents))
    if refused and options.strict:
        return 2
    return 1 if unreadable else 0


def transform(options: argparse.Namespace) -> int:
    """`tamis transform --queries FILE DOC…`."""
    index, refused = _index(options)
    schema = read_schema(options.dtd)
    unreadable = False
    with bar("transforming") as report:
        for done, paths, contents, failures in _read(options.documents):
            unreadable |= bool(failures)
            for at, path in enumerate(paths):
                for row in _transformed(index, path, contents[at].as_py(), failures.get(at), schema):
                    _print_row(row, options.json)
            report(done, len(options.documents))
    if refused and options.strict:
        return 2
    return 1 if unreadable else 0


def _transformed(
    index: tamis.Index,
    path: Path,
    message: bytes | None,
    failure: OSError | None,
    schema: tamis.Schema | None,
) -> Iterator[dict[str, str | int]]:
    """What becomes of a document: a row for each query that matches it, or the error."""
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


def _index(options: argparse.Namespace) -> tuple[tamis.Index, int]:
    """An index of the queries of a file, and how many were refused."""
    lines = options.queries.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    index = tamis.Index()
    return index, _load(index, options.queries, lines, options.namespaces)


def _read(
    documents: list[Path],
) -> Iterator[tuple[int, list[Path], "pa.Array[Any]", dict[int, OSError]]]:
    """Documents in groups: how many there are so far, paths, contents, and what could not be read."""
    done = 0
    for paths in _batches(documents):
        contents: list[bytes | None] = []
        failures: dict[int, OSError] = {}
        for at, path in enumerate(paths):
            try:
                contents.append(path.read_bytes())
            except OSError as error:
                contents.append(None)
                failures[at] = error
        done += len(paths)
        yield done, paths, pa.array(contents, pa.large_binary()), failures


def _load(index: tamis.Index, path: Path, lines: list[bytes], namespaces: dict[str, str] | None) -> int:
    """Load a file's queries, each under the number of its line; report and count the refused."""
    numbers: list[int] = []
    texts: list[str] = []
    refused: dict[int, str] = {}
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode().strip("\r")
        except UnicodeDecodeError as error:
            refused[number] = f"the query is not UTF-8 (byte {error.start + 1})"
            continue
        if text.strip():
            numbers.append(number)
            texts.append(text)
    table = pa.table({"target": pa.array(numbers, pa.uint64()), "query": pa.array(texts, pa.large_string())})
    for row in index.load(table, namespaces=namespaces).to_pylist():
        at = row["row"]
        refused[numbers[at]] = f"{row['reason']}\n{marked(texts[at], row['line'], row['column'])}"
    for number, reason in sorted(refused.items()):
        print(f"{path}:{number}: {reason}", file=sys.stderr)
    return len(refused)


def _batches(paths: list[Path]) -> Iterator[list[Path]]:
    """Group documents so that each group has about `BATCH_BYTES`."""
    group: list[Path] = []
    size = 0
    for path in paths:
        group.append(path)
        size += path.stat().st_size if path.is_file() else 0
        if size >= BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def explain(options: argparse.Namespace) -> int:
    """`tamis explain QUERY DOC`."""
    message = options.document.read_bytes()
    index = tamis.Index()
    try:
        index.insert(1, options.query, namespaces=options.namespaces)
        explanation = index.explain(
            message, options.query, namespaces=options.namespaces, schema=read_schema(options.dtd)
        )
    except tamis.QueryError as error:
        print(f"{error.line}:{error.column}: {error.reason}")
        print(marked(options.query, error.line, error.column))
        return 1
    except tamis.ReadError as error:
        print(f"{options.document}:{error.line}:{error.column}: {error.reason}")
        print(marked(message.decode(errors="replace"), error.line, error.column))
        return 1
    print(explanation.told(message))
    return 0


if __name__ == "__main__":
    sys.exit(main())
