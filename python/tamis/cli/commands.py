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
from tamis.storage.files import set_umask

COMMANDS = {
    "check": (check, "check a query and print its canonical form"),
    "match": (match, "print which queries of a file match each document"),
    "transform": (transform, "run the queries of a file and print their outputs"),
    "explain": (explain, "explain why a query matches a document or not"),
    "subscriptions": (subscriptions, "manage the subscriptions of the catalog"),
    "run": (run, "run the job: sources to sinks"),
    "status": (status, "show the status of the job"),
    "dead-letters": (dead_letters, "list, show and replay dead letters"),
    "serve": (serve, "run the HTTP service with its page"),
    "publish": (publish, "publish messages to a service"),
    "receive": (receive, "receive deliveries from a service"),
    "tokens": (tokens, "manage access tokens of the service"),
    "generate": (generate, "generate documents and queries"),
    "bench": (bench, "measure filtering against parsing with expat"),
}
"""The module of each command, which adds its arguments, and its help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    options = _parser().parse_args(arguments)
    set_umask()
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
