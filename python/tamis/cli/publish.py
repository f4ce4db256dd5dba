"""`tamis publish`: messages to a service."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tamis.cli.progress import bar
from tamis.cli.remote import add_url, client_of

TOGETHER_BYTES = 4 << 20
"""About so many bytes of messages go with one request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is published."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a message each; `-` for standard input"
    )
    parser.add_argument("--id", help="of the message, if it is one; the file's name unless given")
    parser.add_argument("--source", metavar="NAME", help="the tenant's first one unless given")
    add_url(parser)
    parser.set_defaults(run=publish)


def publish(options: argparse.Namespace) -> int:
    """`tamis publish FILE…`: prints the ids of the messages that are accepted."""
    if options.id is not None and len(options.files) > 1:
        print("tamis: --id is for one message", file=sys.stderr)
        return 2
    with client_of(options) as client, bar("publishing") as report:
        done = 0
        for some in _together(options.files, options.id):
            for id in client.publish_many(some, source=options.source):
                print(id, flush=True)
            done += len(some)
            report(done, len(options.files))
    return 0


def _together(files: Iterable[Path], id: str | None) -> Iterator[list[tuple[str | None, bytes]]]:
    """Messages with their ids, some at a time."""
    group: list[tuple[str | None, bytes]] = []
    size = 0
    for file in files:
        standard = file == Path("-")
        content = sys.stdin.buffer.read() if standard else file.read_bytes()
        group.append((id or (None if standard else file.name), content))
        size += len(content)
        if size >= TOGETHER_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
