"""The command `tamis`: its commands, each a module of this package."""

import argparse
import sys
from collections.abc import Sequence

import tamis
from tamis.cli import (
    bench,
    check,
    dead_letters,
    explain,
    generate,
    match,
    publish,
    receive,
    run,
    serve,
    status,
    subscriptions,
    tokens,
    transform,
)

COMMANDS = {
    "check": (check, "is this a query? print its canonical form"),
    "match": (match, "which queries of a file match each document?"),
    "transform": (transform, "what do the queries of a file make of each document?"),
    "explain": (explain, "why does a query match a document, or why not?"),
    "subscriptions": (subscriptions, "the catalog: who wants which messages?"),
    "run": (run, "run the job: messages in, deliveries out"),
    "status": (status, "how is the job doing?"),
    "dead-letters": (dead_letters, "which messages were refused, and why? try them again"),
    "serve": (serve, "run the service: subscribe, publish, receive"),
    "publish": (publish, "send messages to a service"),
    "receive": (receive, "deliveries of a service"),
    "tokens": (tokens, "who may use the service?"),
    "generate": (generate, "documents and queries to try and measure with"),
    "bench": (bench, "what does filtering cost, beside parsing with expat?"),
}
"""The module of each command, which adds its arguments, and its help."""


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
    for name, (module, help) in COMMANDS.items():
        module.add_arguments(commands.add_parser(name, help=help))
    return parser
