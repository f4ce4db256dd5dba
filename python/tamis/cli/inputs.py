"""The inputs of `tamis match` and `tamis transform`: queries of a file or the command line, and documents."""

import argparse
import os
import sys
from pathlib import Path

import tamis
from tamis.cli.limits import add_limits
from tamis.cli.local_data import add_data, attach_data
from tamis.cli.namespaces import add_namespaces, namespaces_of
from tamis.errors import QueryError, marked
from tamis.model.headers import parse_headers
from tamis.model.query_file import queries_of_file


def add_input_arguments(command: argparse.ArgumentParser) -> None:
    """The flags for queries and documents."""
    queries = command.add_mutually_exclusive_group(required=True)
    queries.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help=r"one query per line; `#` begins a comment, `\` at the end continues a line",
    )
    queries.add_argument(
        "-q", "--query", action="append", metavar="QUERY", help="a query; several are numbered from 1"
    )
    command.add_argument(
        "--strict", action="store_true", help="exit with 2 if a query or document is refused"
    )
    command.add_argument(
        "documents", nargs="+", metavar="DOC", help="`-`: standard input; *.gz is decompressed"
    )
    add_data(command)
    add_header(command)
    add_namespaces(command)
    add_limits(command)


def add_header(command: argparse.ArgumentParser) -> None:
    """The flag for headers of documents."""
    command.add_argument(
        "--header", action="append", metavar="NAME=VALUE", help="a header of the documents, for `$envelope`"
    )


def envelope_of(options: argparse.Namespace) -> tamis.Envelope | None:
    """The envelope of the documents; None without headers."""
    return None if options.header is None else tamis.Envelope(headers=parse_headers(options.header))


class Queries:
    """An index of the given queries, by their numbers. Refused ones are reported on standard error."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Load the queries of a file, or those of the command line."""
        self.index = tamis.Index()
        attach_data(self.index, options)
        self.texts: dict[int, str] = {}
        self.refused = 0
        self._file = options.queries
        self.namespaces = namespaces_of(options)
        if options.query is None:
            for number, content in queries_of_file(options.queries.read_bytes()):
                self._insert(number, content)
        else:
            for number, text in enumerate(options.query, start=1):
                self._insert(number, os.fsencode(text))

    def place(self, number: int) -> str:
        """Where a query is, for reports."""
        return f"query {number}" if self._file is None else f"{self._file}:{number}"

    def _insert(self, number: int, content: bytes) -> None:
        try:
            text = content.decode()
            self.index.insert(number, text, namespaces=self.namespaces)
            self.texts[number] = text
            return
        except UnicodeDecodeError as error:
            reason = f"the query is not UTF-8 (byte {error.start + 1})"
        except QueryError as error:
            reason = f"{error.reason}\n{marked(text, error.line, error.column)}"
        self.refused += 1
        print(f"{self.place(number)}: {reason}", file=sys.stderr)


def exit_code(options: argparse.Namespace, queries: Queries, failed: bool) -> int:
    """The exit code; `failed`: whether a document was refused.

    What is refused among many is reported, and fails the command only with `--strict`. A query that is an
    argument fails it.
    """
    if options.strict and (failed or queries.refused):
        return 2
    return 1 if options.query is not None and queries.refused else 0
