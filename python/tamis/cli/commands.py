"""The command `tamis`: its commands, each a module of this package."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import tamis
from tamis.storage.files import set_umask

COMMANDS = {
    "check": "check a query and print its canonical form",
    "match": "print which queries match each document",
    "transform": "run queries on documents and print their outputs",
    "explain": "explain why a query matches a document or not",
    "relational": "manage the tables of the relational engine",
    "subscriptions": "manage the subscriptions of the catalog",
    "data": "manage the local data that subscriptions join messages with",
    "run": "run the job: sources to sinks",
    "status": "show the status of the job",
    "dead-letters": "list, show and replay dead letters",
    "shards": "show the shards of the newest generation",
    "network": "check the network of brokers",
    "serve": "run the HTTP service with its page",
    "publish": "publish messages to a service",
    "receive": "receive deliveries from a service",
    "tokens": "manage access tokens of the service",
    "generate": "generate documents and queries",
    "bench": "measure filtering against parsing with expat",
}
"""The commands with their help. The module of a command adds its arguments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    argv = sys.argv[1:] if arguments is None else arguments
    options = _parser(argv).parse_args(argv)
    set_umask()
    if isinstance(sys.stdout, TextIOWrapper):
        # Names of files are printed as they are, also those that are not text.
        sys.stdout.reconfigure(errors="surrogateescape")
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, wants no more. The interpreter flushes once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except tamis.TamisError as error:
        print(f"tamis: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"tamis: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 1
    return code


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tamis", description=tamis.__doc__)
    parser.add_argument("--version", action="version", version=f"tamis {tamis.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((name for name in argv if not name.startswith("-")), None)
    for name, help in COMMANDS.items():
        command = commands.add_parser(name, help=help)
        # Only the module of the command that runs is imported: importing all takes half a second.
        if name == chosen:
            import_module(f"tamis.cli.{name.replace('-', '_')}").add_arguments(command)
    return parser
