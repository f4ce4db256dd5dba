"""`tamis tokens create|list|revoke`."""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.tables import print_table
from tamis.model.token import NewToken, Role, Token
from tamis.settings import load_settings

if TYPE_CHECKING:
    from tamis.catalog import Catalog

TITLES = ("id", "name", "role", "tenant", "subscriber", "rate", "body", "created", "revoked")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `tokens`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(
        commands, "create", create, "create a token; its secret is printed once and stored nowhere"
    )
    command.add_argument("--role", required=True, choices=[role.value for role in Role])
    command.add_argument("--name", metavar="TEXT", help="a label (default: the role)")
    command.add_argument("--tenant", default="", metavar="NAME", help="tenant of the token")
    command.add_argument(
        "--subscriber", metavar="NAME", help="whose mailbox it opens; for the role subscriber"
    )
    command.add_argument("--rate", type=int, metavar="N", help="requests a second")
    command.add_argument("--body", type=int, metavar="BYTES", help="bytes of one request")

    command = _command(commands, "list", list_, "a table of tokens, without their secrets")
    command.add_argument("--json", action="store_true", help="one line of JSON each")

    command = _command(commands, "revoke", revoke, "revoke a token: it is refused from now on")
    command.add_argument("id", metavar="ID")


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> Any:
    command = commands.add_parser(name, help=text)
    command.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    command.add_argument("--catalog", metavar="URL", help="the catalog (default: from the settings)")
    command.set_defaults(run=run)
    return command


def _catalog(options: argparse.Namespace) -> "Catalog":
    # Slow to import; other commands do not need it.
    from tamis.catalog import Catalog

    return Catalog(load_settings(options.config, {"catalog": options.catalog}).catalog)


def create(options: argparse.Namespace) -> int:
    """`tamis tokens create`: the secret, alone on its line."""
    asked = NewToken(
        name=options.name or options.role,
        role=Role(options.role),
        tenant=options.tenant,
        subscriber=options.subscriber,
        rate=options.rate,
        body=options.body,
    )
    with _catalog(options) as catalog:
        _, secret = catalog.tokens.create(asked)
    print(secret)
    return 0


def list_(options: argparse.Namespace) -> int:
    """`tamis tokens list`."""
    with _catalog(options) as catalog:
        found = catalog.tokens.list()
    if options.json:
        for token in found:
            print(json.dumps(asdict(token), ensure_ascii=False, default=datetime.isoformat))
    else:
        print_table(TITLES, [_cells(token) for token in found], whole=["id"])
    return 0


def _cells(token: Token) -> list[str]:
    limits = ["" if limit is None else str(limit) for limit in (token.rate, token.body)]
    times = [_time(token.created), "" if token.revoked is None else _time(token.revoked)]
    return [token.id, token.name, token.role.value, token.tenant, token.subscriber or "", *limits, *times]


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def revoke(options: argparse.Namespace) -> int:
    """`tamis tokens revoke ID`."""
    with _catalog(options) as catalog:
        catalog.tokens.revoke(options.id)
    return 0
