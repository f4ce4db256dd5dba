"""`tamis receive`: receive deliveries from a service."""

import argparse
import base64
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tamis.cli.remote import add_url, client_of
from tamis.model.printable import printable

if TYPE_CHECKING:
    from tamis.client import Client, Delivery

PAGE = 100
"""Deliveries per request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which deliveries, and how they are printed."""
    parser.add_argument("--subscriber", metavar="NAME", help="whose deliveries; needs an admin token")
    parser.add_argument("--follow", action="store_true", help="wait for new deliveries until Ctrl-C")
    parser.add_argument("--limit", type=int, metavar="N", help="stop after N deliveries")
    parser.add_argument(
        "--acknowledge", action="store_true", help="acknowledge them, so that they are not sent again"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON each")
    add_url(parser)
    parser.set_defaults(run=receive)


def receive(options: argparse.Namespace) -> int:
    """Print deliveries, the oldest first."""
    left = options.limit if options.limit is not None else sys.maxsize
    with client_of(options) as client, suppress(KeyboardInterrupt):
        pages = _events if options.follow else _pages
        for page in pages(client, options.subscriber):
            shown = page[:left]
            for delivery in shown:
                print(_line(delivery) if options.json else _text(delivery))
            # Acknowledge only what was written.
            sys.stdout.flush()
            if options.acknowledge:
                client.acknowledge([one.id for one in shown], subscriber=options.subscriber)
            left -= len(shown)
            if not left:
                break
    return 0


def _pages(client: "Client", subscriber: str | None) -> "Iterator[list[Delivery]]":
    after = 0
    while page := client.deliveries(after=after, limit=PAGE, subscriber=subscriber):
        yield page
        after = page[-1].cursor


def _events(client: "Client", subscriber: str | None) -> "Iterator[list[Delivery]]":
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
