"""`tamis receive`: deliveries of a service."""

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
"""Deliveries that are fetched, and acknowledged, together."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose deliveries, and what becomes of them."""
    parser.add_argument("--subscriber", metavar="NAME", help="whose, for an admin's token")
    parser.add_argument("--follow", action="store_true", help="go on as they come, until Ctrl-C")
    parser.add_argument("--limit", type=int, metavar="N", help="end after so many")
    parser.add_argument("--acknowledge", action="store_true", help="have them not sent again")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each")
    add_url(parser)
    parser.set_defaults(run=receive)


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
