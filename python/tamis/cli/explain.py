"""`tamis explain`: explain why a query matches a document or not."""

import argparse
from pathlib import Path

import tamis
from tamis.cli.namespaces import add_namespaces
from tamis.errors import marked
from tamis.sources.dtd_file import read_schema


def add_arguments(command: argparse.ArgumentParser) -> None:
    """A query and a document."""
    command.add_argument("query")
    command.add_argument("document", type=Path, metavar="DOC")
    command.add_argument(
        "--dtd", type=Path, metavar="FILE", help="the DTD of the documents; speeds up transformations"
    )
    add_namespaces(command)
    command.set_defaults(run=explain)


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
    print(explanation.render(message))
    return 0
