"""`tamis data add|list|show|update|revert|refresh|remove`: the local data of subscriptions."""

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.progress import bar
from tamis.cli.remote import RemoteError, add_url, client_of, url_of
from tamis.cli.tables import print_table
from tamis.errors import DataError
from tamis.model.data_set import DataSet, DataVersion, NewDataSet
from tamis.model.printable import printable
from tamis.settings import load_settings

if TYPE_CHECKING:
    from tamis.cli.data_place import DataPlace
    from tamis.cli.remote_data import RemoteData
    from tamis.data.source import DataSource

TITLES = ("tenant", "name", "version", "records", "bytes", "key", "users", "updated", "source")

REFRESH_FLAGS = ("catalog", "store", "state")
"""Settings that `tamis serve` passes on to `tamis data refresh`."""

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

    command = commands.add_parser(
        "refresh", help="read the data of [[data]] in the settings again and again; `tamis serve` runs it"
    )
    command.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    for name in REFRESH_FLAGS:
        command.add_argument(f"--{name}", metavar="VALUE", help=f"or TAMIS_{name.upper()}")
    command.set_defaults(run=refresh)

    command = _command(commands, "remove", remove, "remove data sets that no subscription names")
    command.add_argument("names", nargs="+", metavar="NAME")


def _command(commands: Any, name: str, run: Any, text: str, *, all_tenants: bool = False) -> Any:
    command = commands.add_parser(name, help=text)
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "--catalog",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER@HOST/NAME; default: TAMIS_CATALOG or tamis.toml",
    )
    add_url(place)
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
    command.add_argument("--source", metavar="TEXT", help="where the records come from (default: FILE)")
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
def _opened(options: argparse.Namespace) -> Iterator["DataPlace | RemoteData"]:
    """The data of a service if one is named, else of the catalog."""
    # SQLAlchemy takes 0.2 s to import, and the client likewise.
    if options.catalog is None and url_of(options) is not None:
        if options.tenant:
            raise RemoteError("other-tenant", "the token decides the tenant: leave --tenant out")
        from tamis.cli.remote_data import remote_data

        with remote_data(client_of(options)) as remote:
            yield remote
        return
    from tamis.cli.data_place import local_data

    with local_data(load_settings(None, {"catalog": options.catalog, "store": options.store})) as local:
        yield local


def add(options: argparse.Namespace) -> int:
    """`tamis data add NAME FILE`."""
    source = _source(options)
    if source is None:
        raise DataError("no-source", "name a FILE, or --sql with --query")
    indexed = None if options.index is None else tuple(options.index)
    described = options.source or str(source)
    new = NewDataSet(options.name, options.tenant, options.shared, options.key, indexed, described)
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
            _print(place.replace(options.name, options.tenant, source, report, options.source))
        else:
            _print(place.change(options.name, options.tenant, source, deletes, report, options.source))
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


def refresh(options: argparse.Namespace) -> int:
    """`tamis data refresh`: until a signal. What is half done then is done anew by the next run."""
    from tamis.catalog import Catalog
    from tamis.generations.data_refresher import DataRefresher
    from tamis.generations.data_updater import DataUpdater
    from tamis.generations.store import Store

    settings = load_settings(options.config, {name: getattr(options, name) for name in REFRESH_FLAGS})
    if not settings.data:
        raise DataError("no-source", "the settings have no [[data]]")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr, level=logging.INFO)
    with Catalog(settings.catalog) as catalog, suppress(KeyboardInterrupt):
        updater = DataUpdater(catalog.data, Store(settings.generations), settings.state / "data")
        DataRefresher(settings.data, catalog.data, updater).run()
    return 0


def _print(one: DataSet) -> None:
    current = one.current
    if current is not None:
        print(f"{one.name} version {current.number}: {current.records} records, {current.bytes} bytes")


def _value(one: DataSet) -> dict[str, Any]:
    names = ("tenant", "name", "shared", "key", "indexed", "users")
    value: dict[str, Any] = {name: getattr(one, name) for name in names}
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
