"""Prefix maps from files."""

import argparse
import tomllib
from pathlib import Path


def read_namespaces(path: str) -> dict[str, str]:
    """A prefix map from a TOML file: its top level, or its table `namespaces`."""
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from error
    table = content.get("namespaces", content)
    if not isinstance(table, dict) or not all(isinstance(uri, str) for uri in table.values()):
        raise argparse.ArgumentTypeError(f'{path}: a prefix map has the form `prefix = "uri"`')
    return table


def add_namespaces(command: argparse.ArgumentParser) -> None:
    """The flag for a prefix map."""
    command.add_argument(
        "--namespaces", type=read_namespaces, metavar="FILE", help='TOML, one line `prefix = "uri"` for each'
    )
