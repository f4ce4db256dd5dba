"""`tamis check`: check a query and print its canonical form."""

import argparse

import tamis
from tamis.cli.documents import DocumentError, read_document
from tamis.cli.namespaces import add_namespaces, binding_hint, namespaces_of
from tamis.cli.warnings import print_warnings
from tamis.errors import marked


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The query, a document to try it on, and a prefix map."""
    command.add_argument("query")
    command.add_argument(
        "document",
        nargs="?",
        metavar="DOC",
        help="also report names that this document has in other namespaces; `-`: standard input",
    )
    add_namespaces(command)
    command.set_defaults(run=check)


def check(options: argparse.Namespace) -> int:
    """`tamis check QUERY [DOC]`."""
    namespaces = namespaces_of(options)
    try:
        query = tamis.check(options.query, namespaces)
    except tamis.QueryError as error:
        print(f"{error.line}:{error.column}: {error.reason}")
        print(marked(options.query, error.line, error.column))
        if options.document and (hint := binding_hint(error, options.query, options.document)):
            print(hint)
        return 1
    print(query.canonical)
    print_warnings(options.query, query.warnings)
    return _try_on(options.document, options.query, namespaces) if options.document else 0


def _try_on(document: str, query: str, namespaces: dict[str, str] | None) -> int:
    """Print whether the document matches; 1 if it cannot be read."""
    limits = tamis.Limits()
    try:
        message = read_document(document, limits.document)
        explanation = tamis.Index().explain(message, query, namespaces=namespaces, limits=limits)
    except DocumentError as error:
        print(f"{document}: {error.reason}")
        return 1
    except tamis.ReadError as error:
        print(f"{document}:{error.line}:{error.column}: {error.reason}")
        return 1
    print(f"{document}: {'matches' if explanation.matches else f'does not match: {explanation.reason}'}")
    return 0
