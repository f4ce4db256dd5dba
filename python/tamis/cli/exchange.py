"""`tamis publish` and `tamis receive`: messages to a service, and deliveries from it."""

import argparse
import base64
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.progress import bar
from tamis.cli.remote import add_url, client_of
from tamis.model.printable import printable

if TYPE_CHECKING:
    from tamis.client import Client, Delivery

TOGETHER_BYTES = 4 << 20
"""About so many bytes of messages go with one request."""

PAGE = 100
"""Deliveries that are fetched, and acknowledged, together."""


def add_publish_arguments(parser: argparse.ArgumentParser) -> None:
    """What is published."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a message each; `-` for standard input"
    )
    parser.add_argument("--id", help="of the message, if it is one; the file's name unless given")
    parser.add_argument("--source", metavar="NAME", help="the tenant's first one unless given")
    add_url(parser)
    parser.set_defaults(run=publish)


def add_receive_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose deliveries, and what becomes of them."""
    parser.add_argument("--subscriber", metavar="NAME", help="whose, for an admin's token")
    parser.add_argument("--follow", action="store_true", help="go on as they come, until Ctrl-C")
    parser.add_argument("--limit", type=int, metavar="N", help="end after so many")
    parser.add_argument("--acknowledge", action="store_true", help="have them not sent again")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each")
    add_url(parser)
    parser.set_defaults(run=receive)


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


def receive(options: argparse.Namespace) -> int:
    """`tamis receive`: prints deliveries, the oldest first."""
    left = options.limit if options.limit is not None else sys.maxsize
    with client_of(options) as client, suppress(KeyboardInterrupt):
        pages = _as_they_come if options.follow else _waiting
        for page in pages(client, options.subscriber):
            wanted = page[:left]
            for delivery in wanted:
                print(_line(delivery) if options.json else _text(delivery))
            # Only what somebody has seen is acknowledged.
            sys.stdout.flush()
            if options.acknowledge:
                client.acknowledge([one.id for one in wanted], subscriber=options.subscriber)
            left -= len(wanted)
            if not left:
                break
    return 0


def _waiting(client: "Client", subscriber: str | None) -> "Iterator[list[Delivery]]":
    after = 0
    while page := client.deliveries(after=after, limit=PAGE, subscriber=subscriber):
        yield page
        after = page[-1].cursor


def _as_they_come(client: "Client", subscriber: str | None) -> "Iterator[list[Delivery]]":
    return ([one] for one in client.events(subscriber=subscriber))


def _text(delivery: "Delivery") -> str:
    payload = delivery.payload.decode(errors="replace")
    return f"{printable(delivery.message)}\t{printable(delivery.subscription)}\n{payload}"


def _line(delivery: "Delivery") -> str:
    value: dict[str, Any] = asdict(delivery)
    try:
        value["payload"] = delivery.payload.decode()
    except UnicodeDecodeError:
        value["payload"] = None
        value["base64"] = base64.b64encode(delivery.payload).decode()
    return json.dumps(value, ensure_ascii=False)
