"""`tamis explain`: explain why a query matches a document or not."""

import argparse
from pathlib import Path

import tamis
from tamis.cli.documents import DocumentError, read_document
from tamis.cli.explain_joins import explain_joins
from tamis.cli.inputs import add_header, envelope_of
from tamis.cli.limits import add_limits, limits_of
from tamis.cli.local_data import add_data, attach_data
from tamis.cli.namespaces import add_namespaces, binding_hint, namespaces_of
from tamis.errors import marked
from tamis.sources.dtd_file import read_schema
from tamis.sources.transcode import display_text, utf8_form


def add_arguments(command: argparse.ArgumentParser) -> None:
    """A query and a document."""
    command.add_argument("query")
    command.add_argument("document", metavar="DOC", help="`-`: standard input; *.gz is decompressed")
    command.add_argument(
        "--verbose", action="store_true", help="also the plan: linear paths, alternatives and operators"
    )
    command.add_argument(
        "--engine",
        choices=("kernel", "relational"),
        default="kernel",
        help="`relational`: also how joins decide the query",
    )
    command.add_argument(
        "--dtd", type=Path, metavar="FILE", help="the DTD of the documents; speeds up transformations"
    )
    add_data(command)
    add_header(command)
    add_namespaces(command)
    add_limits(command)
    command.set_defaults(run=explain)


def explain(options: argparse.Namespace) -> int:
    """`tamis explain QUERY DOC`."""
    limits = limits_of(options)
    namespaces = namespaces_of(options)
    index = tamis.Index()
    attach_data(index, options)
    try:
        message = read_document(options.document, limits.document)
        index.insert(1, options.query, namespaces=namespaces)
        explanation = index.explain(
            message,
            options.query,
            envelope=envelope_of(options),
            namespaces=namespaces,
            limits=limits,
            schema=read_schema(options.dtd),
        )
    except tamis.QueryError as error:
        print(f"{error.line}:{error.column}: {error.reason}")
        print(marked(options.query, error.line, error.column))
        if hint := binding_hint(error, options.query, options.document):
            print(hint)
        return 1
    except DocumentError as error:
        print(f"{options.document}: {error.reason}")
        return 1
    except tamis.ReadError as error:
        print(f"{options.document}:{error.line}:{error.column}: {error.reason}")
        print(marked(display_text(message), error.line, error.column))
        return 1
    message = utf8_form(message)
    if options.engine == "relational":
        print(explanation.render(message), *explain_joins(options.query, namespaces), sep="\n")
        return 0
    print(explanation.render_plan(message) if options.verbose else explanation.render(message))
    return 0
