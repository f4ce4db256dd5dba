"""`tamis publish`: publish messages to a service."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tamis.cli.progress import bar
from tamis.cli.remote import add_url, client_of
from tamis.model.headers import parse_headers

REQUEST_BYTES = 4 << 20
"""About how many bytes of messages go into one request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Messages and their destination."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="one message each; `-`: standard input"
    )
    parser.add_argument("--id", help="id of a single message (default: the file name)")
    parser.add_argument("--source", metavar="NAME", help="source to publish to (default: the tenant's first)")
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME=VALUE", help="a header of the messages"
    )
    add_url(parser)
    parser.set_defaults(run=publish)


def publish(options: argparse.Namespace) -> int:
    """`tamis publish FILE…`: prints the ids of the messages that are accepted."""
    if options.id is not None and len(options.files) > 1:
        print("tamis: --id is for one message", file=sys.stderr)
        return 2
    headers = parse_headers(options.header)
    with client_of(options) as client, bar("publishing") as report:
        done = 0
        for some in _requests(options.files, options.id):
            for id in client.publish_many(some, source=options.source, headers=headers):
                print(id, flush=True)
            done += len(some)
            report(done, len(options.files))
    return 0


def _requests(files: Iterable[Path], id: str | None) -> Iterator[list[tuple[str | None, bytes]]]:
    """Messages with their ids, grouped by request."""
    group: list[tuple[str | None, bytes]] = []
    size = 0
    for file in files:
        standard = file == Path("-")
        content = sys.stdin.buffer.read() if standard else file.read_bytes()
        group.append((id or (None if standard else file.name), content))
        size += len(content)
        if size >= REQUEST_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
