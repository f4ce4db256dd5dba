"""The flag `--limit` of commands that read documents."""

import argparse
from dataclasses import fields, replace
from typing import Any

from tamis.model.matching import Limits
from tamis.model.sizes import size_of

_SWITCHES = {"true": True, "false": False}


def add_limits(command: argparse.ArgumentParser) -> None:
    """`--limit NAME=VALUE`, for each limit once."""
    command.add_argument(
        "--limit",
        action="append",
        default=[],
        type=_limit,
        metavar="NAME=VALUE",
        help="change a limit: document=64MiB, depth=1000, internal_subset=true …; may be repeated",
    )


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits that were given; the default of each other one."""
    return replace(Limits(), **dict(options.limit))


def _limit(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    kinds = {field.name: field.type for field in fields(Limits)}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"no limit is called {name!r}; the limits are {', '.join(kinds)}")
    if kinds[name] is bool:
        if value not in _SWITCHES:
            raise argparse.ArgumentTypeError(f"{name} is true or false, not {value!r}")
        return name, _SWITCHES[value]
    try:
        return name, size_of(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from error
