"""`tamis relational build|status|compact|forget`: the tables of the relational engine."""

import argparse
import json
from pathlib import Path

from tamis.extras import require
from tamis.relational.tables import Tables, TablesError
from tamis.settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `relational`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("build", build, "write what changed in the catalog since the last time"),
        ("status", status, "the version and the rows of the tables, as JSON"),
        ("compact", compact, "write the live rows of all changes as one"),
        ("forget", forget, "remove tag paths that will not come again"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--catalog", metavar="URL", help="the catalog (default: that of the settings)")
        command.add_argument(
            "--tables", type=Path, metavar="DIR", help="default: `relational` in the state directory"
        )
        if name == "forget":
            command.add_argument("paths", nargs="+", metavar="PATH", help="`/a/b/@x`, with `Q{uri}name`")
        command.set_defaults(run=run)


def build(options: argparse.Namespace) -> int:
    """`tamis relational build`."""
    require("catalog")
    from tamis.catalog import Catalog
    from tamis.generations.catalog_tables import update_tables

    with Catalog(load_settings(None, {"catalog": options.catalog}).catalog) as catalog:
        tables = update_tables(catalog, _directory(options))
    print(f"{len(tables.subscriptions())} subscriptions, version {tables.version and tables.version.count}")
    return 0


def status(options: argparse.Namespace) -> int:
    """`tamis relational status`."""
    tables = Tables.open(_directory(options))
    names = ("alternatives", "linear_paths", "subscriptions")
    rows = {name: tables.live(name).num_rows for name in names}
    content = {
        "version": tables.version and tables.version.count,
        "changes": len(tables.changes),
        **rows,
        "tag_paths": len(tables.tag_paths()),
    }
    print(json.dumps(content))
    return 0


def compact(options: argparse.Namespace) -> int:
    """`tamis relational compact`."""
    Tables.open(_directory(options)).compact()
    return 0


def forget(options: argparse.Namespace) -> int:
    """`tamis relational forget PATH…`."""
    tables = Tables.open(_directory(options))
    unknown = [path for path in options.paths if not tables.forget(path)]
    if unknown:
        raise TablesError("no-tag-path", f"the tables do not have {', '.join(unknown)}")
    return 0


def _directory(options: argparse.Namespace) -> Path:
    return options.tables or load_settings(None, {}).state / "relational"
