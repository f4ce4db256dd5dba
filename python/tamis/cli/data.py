"""`tamis data add|list|show|update|revert|remove`: the local data that subscriptions join messages with."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.progress import bar
from tamis.cli.tables import print_table
from tamis.errors import DataError
from tamis.model.data_set import DataSet, DataVersion, NewDataSet
from tamis.model.printable import printable
from tamis.settings import load_settings

if TYPE_CHECKING:
    from tamis.cli.data_place import DataPlace
    from tamis.data.source import DataSource

TITLES = ("tenant", "name", "version", "records", "bytes", "key", "users", "updated", "source")

PREVIEW = 5
"""Records that `show` prints."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `data`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(commands, "add", add, "give a data set its name and its first records")
    command.add_argument("name")
    _add_source(command)
    command.add_argument(
        "--key", metavar="PATH", help="of the value that identifies a record, such as /row/id"
    )
    command.add_argument(
        "--index",
        action="append",
        metavar="PATH",
        help="a path whose values find records; may be repeated (default: all)",
    )
    command.add_argument("--shared", action="store_true", help="for all tenants")

    command = _command(commands, "list", list_, "a table of data sets", all_tenants=True)
    command.add_argument("--json", action="store_true", help="one line of JSON each")

    command = _command(commands, "show", show, "a data set as JSON: versions, users, first records")
    command.add_argument("name")
    command.add_argument(
        "--records", type=int, default=PREVIEW, metavar="N", help=f"how many (default: {PREVIEW})"
    )

    command = _command(commands, "update", update, "replace all records, or some of them by key")
    command.add_argument("name")
    _add_source(command)
    command.add_argument(
        "--upsert", action="store_true", help="add the given records, and replace those with the same keys"
    )
    command.add_argument(
        "--delete", action="append", metavar="KEY", help="remove the record with this key; may be repeated"
    )

    command = _command(commands, "revert", revert, "go back to an older version")
    command.add_argument("name")
    command.add_argument("--version", type=int, metavar="N", help="default: the one before the current one")

    command = _command(commands, "remove", remove, "remove data sets that no subscription names")
    command.add_argument("names", nargs="+", metavar="NAME")


def _command(commands: Any, name: str, run: Any, text: str, *, all_tenants: bool = False) -> Any:
    command = commands.add_parser(name, help=text)
    command.add_argument(
        "--catalog",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER@HOST/NAME; default: TAMIS_CATALOG or tamis.toml",
    )
    command.add_argument("--store", metavar="URL", help="of generations; default: TAMIS_STORE or tamis.toml")
    help = "default: all tenants" if all_tenants else "default: the unnamed tenant"
    command.add_argument("--tenant", default=None if all_tenants else "", metavar="NAME", help=help)
    command.set_defaults(run=run)
    return command


def _add_source(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="an XML file, a folder of them, *.csv or *.parquet",
    )
    command.add_argument("--record", metavar="ELEMENT", help="the element of an XML file that each record is")
    command.add_argument(
        "--sql", metavar="URL", help="of a database; ${NAME} in it is a variable of the environment"
    )
    command.add_argument("--query", metavar="SELECT", help="of --sql: each row is a record")


def _source(options: argparse.Namespace) -> "DataSource | None":
    """Where the records come from; None if that is not given."""
    from tamis.data.source import FileSource, QuerySource

    if options.sql is not None and options.query is not None and options.file is None:
        return QuerySource(options.sql, options.query)
    if options.sql is not None or options.query is not None:
        raise DataError("two-sources", "give FILE, or --sql with --query")
    return None if options.file is None else FileSource(options.file, options.record)


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator["DataPlace"]:
    """The data of a catalog."""
    # SQLAlchemy takes 0.2 s to import.
    from tamis.cli.data_place import local_data

    with local_data(load_settings(None, {"catalog": options.catalog, "store": options.store})) as local:
        yield local


def add(options: argparse.Namespace) -> int:
    """`tamis data add NAME FILE`."""
    source = _source(options)
    if source is None:
        raise DataError("no-source", "name a FILE, or --sql with --query")
    indexed = None if options.index is None else tuple(options.index)
    new = NewDataSet(options.name, options.tenant, options.shared, options.key, indexed, str(source))
    with _opened(options) as place, bar("reading") as report:
        _print(place.add(new, source, report))
    return 0


def update(options: argparse.Namespace) -> int:
    """`tamis data update NAME`."""
    source, deletes = _source(options), options.delete or []
    if source is None and not deletes:
        raise DataError("no-source", "name a FILE, --sql with --query, or --delete KEY")
    if source is not None and deletes and not options.upsert:
        raise DataError("two-updates", "a FILE replaces all records; with --delete, add --upsert")
    with _opened(options) as place, bar("reading") as report:
        if source is not None and not options.upsert:
            _print(place.replace(options.name, options.tenant, source, report))
        else:
            _print(place.change(options.name, options.tenant, source, deletes, report))
    return 0


def list_(options: argparse.Namespace) -> int:
    """`tamis data list`."""
    with _opened(options) as place:
        found = place.list(options.tenant)
    if options.json:
        for one in found:
            print(json.dumps(_value(one), ensure_ascii=False, default=datetime.isoformat))
    else:
        print_table(TITLES, [_cells(one) for one in found], whole=["name", "version", "updated"])
    return 0


def show(options: argparse.Namespace) -> int:
    """`tamis data show NAME`."""
    with _opened(options) as place:
        one = place.get(options.name, options.tenant)
        value = _value(one) | {
            "versions": [_version(version) for version in place.versions(options.name, options.tenant)],
            "subscriptions": list(place.users(one, options.tenant)),
            "preview": place.preview(options.name, options.tenant, options.records),
        }
    print(json.dumps(value, indent=2, ensure_ascii=False, default=datetime.isoformat))
    return 0


def revert(options: argparse.Namespace) -> int:
    """`tamis data revert NAME`."""
    with _opened(options) as place:
        _print(place.revert(options.name, options.tenant, options.version))
    return 0


def remove(options: argparse.Namespace) -> int:
    """`tamis data remove NAME…`."""
    missing = 0
    with _opened(options) as place:
        for name in options.names:
            if not place.remove(name, options.tenant):
                missing += 1
                print(f"tamis: there is no local data {printable(name)}", file=sys.stderr)
    return 1 if missing else 0


def _print(one: DataSet) -> None:
    current = one.current
    if current is not None:
        print(f"{one.name} version {current.number}: {current.records} records, {current.bytes} bytes")


def _value(one: DataSet) -> dict[str, Any]:
    value = dataclasses.asdict(one)
    value["current"] = None if one.current is None else _version(one.current)
    return value


def _version(one: DataVersion) -> dict[str, Any]:
    return {
        "number": one.number,
        "records": one.records,
        "bytes": one.bytes,
        "source": one.source,
        "created": one.created,
    }


def _cells(one: DataSet) -> Sequence[str]:
    current = one.current
    tenant = "(all)" if one.shared else one.tenant
    if current is None:
        return [tenant, one.name, "", "", "", one.key or "", str(one.users), "", one.source]
    updated = current.created.isoformat(timespec="seconds")
    numbers = [str(current.number), str(current.records), str(current.bytes)]
    return [tenant, one.name, *numbers, one.key or "", str(one.users), updated, current.source]
