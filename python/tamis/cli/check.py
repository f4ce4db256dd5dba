"""`tamis check`: check a query and print its canonical form."""

import argparse

import tamis
from tamis.cli.namespaces import add_namespaces
from tamis.errors import marked


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The query, and a prefix map for it."""
    command.add_argument("query")
    add_namespaces(command)
    command.set_defaults(run=check)


def check(options: argparse.Namespace) -> int:
    """`tamis check QUERY`."""
    try:
        print(tamis.check(options.query, options.namespaces).canonical)
    except tamis.QueryError as error:
        print(f"{error.line}:{error.column}: {error.reason}")
        print(marked(options.query, error.line, error.column))
        return 1
    return 0
