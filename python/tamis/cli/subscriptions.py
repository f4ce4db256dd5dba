"""`tamis subscriptions add|change|list|show|pause|resume|remove|import|export|prefixes`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tamis.cli.namespaces import add_namespaces, namespaces_of, read_namespaces
from tamis.cli.progress import bar
from tamis.cli.remote import RemoteCatalog, RemoteError, add_url, client_of, url_of
from tamis.cli.tables import print_table
from tamis.cli.wait import wait_until_established
from tamis.cli.warnings import print_warnings
from tamis.errors import CatalogError, QueryError, marked
from tamis.model import subscription_lines as lines
from tamis.model.progress import Report
from tamis.model.subscription import (
    Established,
    Namespaces,
    NewSubscription,
    PrefixMap,
    Refusal,
    State,
    Subscription,
)
from tamis.settings import load_settings

if TYPE_CHECKING:
    from tamis.catalog import Catalog

TITLES = ("tenant", "id", "revision", "subscriber", "query", "delivery target", "state")

REPORT_LINES = 1_000
"""Lines between two updates of the progress bar."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `subscriptions`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(commands, "add", add, "register a query; print its id")
    command.add_argument("query")
    command.add_argument("--subscriber", required=True, metavar="NAME")
    command.add_argument("--id", help="default: generated")
    command.add_argument(
        "--wait", action="store_true", help="until it is established at all brokers of the network"
    )
    command.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="of --wait (default: 60)"
    )
    _add_content(command)

    command = _command(commands, "change", change, "change what is given of a subscription")
    command.add_argument("id")
    command.add_argument("--query")
    command.add_argument("--subscriber", metavar="NAME")
    _add_content(command)

    for name, run, text in (
        ("show", show, "a subscription as JSON"),
        ("pause", pause, "match no more messages against a subscription, for now"),
        ("resume", resume, "match messages against a paused subscription again"),
        ("remove", remove, "remove subscriptions"),
    ):
        command = _command(commands, name, run, text)
        command.add_argument("ids", nargs="+", metavar="ID")

    command = _command(commands, "list", list_, "a table of subscriptions", all_tenants=True)
    command.add_argument("--subscriber", metavar="NAME")
    command.add_argument("--state", type=State, choices=tuple(State))
    command.add_argument("--text", help="substring of the query")
    command.add_argument("--limit", type=int, default=100, metavar="N", help="at most N rows (default: 100)")
    command.add_argument("--json", action="store_true", help="one line of JSON each")

    command = _command(commands, "import", import_, "add or change subscriptions from JSON lines")
    command.add_argument("file", type=Path, metavar="FILE", help="`-`: standard input")
    command.add_argument("--strict", action="store_true", help="exit with 2 if a line is refused")

    command = _command(commands, "export", export, "subscriptions as JSON lines", all_tenants=True)
    command.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")

    prefixes = commands.add_parser("prefixes", help="prefix maps that subscriptions share by name")
    kinds = prefixes.add_subparsers(required=True, metavar="COMMAND")
    command = _command(
        kinds, "put", put_prefixes, "add a prefix map, or change it and its users", served=False
    )
    command.add_argument("name")
    command.add_argument("file", type=read_namespaces, metavar="FILE", help='TOML: `prefix = "uri"`')
    command = _command(kinds, "list", list_prefixes, "a table of prefixes", all_tenants=True, served=False)
    command.add_argument("--json", action="store_true", help="one line of JSON each prefix map")
    command = _command(kinds, "remove", remove_prefixes, "remove an unused prefix map", served=False)
    command.add_argument("name")


def _command(
    commands: Any, name: str, run: Any, text: str, *, all_tenants: bool = False, served: bool = True
) -> Any:
    """`served`: whether a service offers it too."""
    command = commands.add_parser(name, help=text)
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "--catalog",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER@HOST/NAME; default: TAMIS_CATALOG or tamis.toml",
    )
    if served:
        add_url(place)
    if name != "import":
        help = "default: all tenants" if all_tenants else "default: the unnamed tenant"
        command.add_argument("--tenant", default=None if all_tenants else "", metavar="NAME", help=help)
    command.set_defaults(run=run)
    return command


def _add_content(command: argparse.ArgumentParser) -> None:
    add_namespaces(command)
    command.add_argument("--prefixes", metavar="NAME", help="name of a shared prefix map instead")
    command.add_argument("--delivery-target", metavar="TARGET", help="where deliveries go (default: outbox)")


def _subscriptions(options: argparse.Namespace) -> "Catalog | RemoteCatalog":
    """The subscriptions of a service if one is named, else of the catalog."""
    if options.catalog is None and url_of(options) is not None:
        if getattr(options, "tenant", None):
            raise RemoteError("other-tenant", "the token decides the tenant: leave --tenant out")
        return RemoteCatalog(client_of(options))
    return _catalog(options)


def _catalog(options: argparse.Namespace) -> "Catalog":
    # SQLAlchemy takes 0.2 s to import; other commands do not need it.
    from tamis.catalog import Catalog

    return Catalog(load_settings(None, {"catalog": options.catalog}).catalog)


def _warn_of_target(options: argparse.Namespace) -> None:
    """Only a warning: the job of this catalog may have other settings."""
    target = options.delivery_target
    if (
        target is not None
        and (options.catalog is not None or url_of(options) is None)
        and not load_settings().has_target(target)
    ):
        reason = f"no [[sink]] of these settings has the delivery target {target}"
        print(f"tamis: {reason}: its deliveries go to the sinks without targets", file=sys.stderr)


def _namespaces(options: argparse.Namespace) -> Namespaces | None:
    own = namespaces_of(options)
    if own is not None and options.prefixes is not None:
        raise CatalogError("two-prefix-maps", "give a shared prefix map (--prefixes) or prefixes, not both")
    return own if options.prefixes is None else str(options.prefixes)


def add(options: argparse.Namespace) -> int:
    """`tamis subscriptions add QUERY`."""
    asked = NewSubscription(options.subscriber, options.query, options.id, options.tenant)
    asked = dataclasses.replace(
        asked,
        namespaces=_namespaces(options) or {},
        delivery_target=options.delivery_target or asked.delivery_target,
    )
    _warn_of_target(options)
    with _subscriptions(options) as catalog, _refusal_printed(options.query) as outcome:
        added = catalog.add(asked)
        print(added.id, flush=True)
        print_warnings(added.query, added.warnings)
        if options.wait:
            wait_until_established(lambda: _established(options, catalog, added), options.timeout)
    return outcome.exit_code


def _established(
    options: argparse.Namespace, catalog: "Catalog | RemoteCatalog", one: Subscription
) -> Established | None:
    """Where a subscription is established; None if there is no network."""
    if isinstance(catalog, RemoteCatalog):
        return catalog.established(one)
    brokers = load_settings(None, {"catalog": options.catalog}).brokers()
    return catalog.routes.established_of(one, brokers) if brokers else None


def change(options: argparse.Namespace) -> int:
    """`tamis subscriptions change ID`."""
    _warn_of_target(options)
    with _subscriptions(options) as catalog, _refusal_printed(options.query) as outcome:
        changed = catalog.change(
            options.id,
            tenant=options.tenant,
            subscriber=options.subscriber,
            query=options.query,
            namespaces=_namespaces(options),
            delivery_target=options.delivery_target,
        )
        print(f"{changed.id} revision {changed.revision}")
        print_warnings(changed.query, changed.warnings)
    return outcome.exit_code


class _Outcome:
    """The exit code of a command, set when the context `_refusal_printed` ends."""

    exit_code = 0


@contextmanager
def _refusal_printed(query: str | None) -> Iterator[_Outcome]:
    """Print the error of a refused query with a caret at its position; the exit code is then 1."""
    outcome = _Outcome()
    try:
        yield outcome
    except QueryError as error:
        outcome.exit_code = 1
        print(f"{error.line}:{error.column}: {error.code}: {error.reason}", file=sys.stderr)
        if query is not None:
            print(marked(query, error.line, error.column), file=sys.stderr)


def show(options: argparse.Namespace) -> int:
    """`tamis subscriptions show ID…`."""
    with _subscriptions(options) as catalog:
        for id in options.ids:
            one = catalog.get(id, tenant=options.tenant)
            found = _value(dataclasses.replace(one, established=_established(options, catalog, one)))
            print(json.dumps(found, indent=2, ensure_ascii=False, default=datetime.isoformat))
    return 0


def _value(one: Subscription) -> dict[str, Any]:
    value = dataclasses.asdict(one)
    # The number has a meaning only inside the index.
    del value["number"]
    if one.established is None:
        del value["established"]
    return value


def _cells(one: Subscription) -> list[str]:
    names = (one.tenant, one.id, str(one.revision), one.subscriber)
    return [*names, one.query, one.delivery_target, one.state.value]


def pause(options: argparse.Namespace) -> int:
    """`tamis subscriptions pause ID…`."""
    with _subscriptions(options) as catalog:
        for id in options.ids:
            catalog.pause(id, tenant=options.tenant)
    return 0


def resume(options: argparse.Namespace) -> int:
    """`tamis subscriptions resume ID…`."""
    with _subscriptions(options) as catalog:
        for id in options.ids:
            catalog.resume(id, tenant=options.tenant)
    return 0


def remove(options: argparse.Namespace) -> int:
    """`tamis subscriptions remove ID…`."""
    missing = 0
    with _subscriptions(options) as catalog:
        for id in options.ids:
            if not catalog.remove(id, tenant=options.tenant):
                missing += 1
                print(f"tamis: there is no subscription {id}", file=sys.stderr)
    return 1 if missing else 0


def list_(options: argparse.Namespace) -> int:
    """`tamis subscriptions list`."""
    with _subscriptions(options) as catalog:
        found = catalog.list(
            tenant=options.tenant,
            subscriber=options.subscriber,
            state=options.state,
            text=options.text,
            limit=options.limit + 1,
        )
    shown = found[: options.limit]
    if options.json:
        for one in shown:
            print(json.dumps(_value(one), ensure_ascii=False, default=datetime.isoformat))
    else:
        print_table(TITLES, [_cells(one) for one in shown], whole=["revision", "state"])
    if len(found) > len(shown):
        print("There are more: narrow the list down, raise --limit, or export.", file=sys.stderr)
    return 0


def import_(options: argparse.Namespace) -> int:
    """`tamis subscriptions import FILE`."""

    def refused(refusal: Refusal) -> None:
        print(f"{options.file}:{_refusal_text(refusal)}", file=sys.stderr)

    # Open the file first: a wrong name must not create a catalog.
    with _opened(options.file) as file, _subscriptions(options) as catalog, bar("importing") as report:
        size = options.file.stat().st_size if options.file.is_file() else 0
        done = catalog.import_(lines.read(_counted(file, size, report)), refused)
    for one in done.warnings:
        text = f"{one.place}: column {one.column}: warning: {one.reason}"
        print(f"{options.file}:{text}", file=sys.stderr)
    warned = f", {done.warned} with a warning" if done.warned else ""
    counts = f"{done.added} added, {done.changed} changed, {done.unchanged} unchanged, {done.refused} refused"
    print(counts + warned)
    return 2 if done.refused and options.strict else 0


def _refusal_text(refusal: Refusal) -> str:
    column = "" if refusal.column is None else f"column {refusal.column}: "
    return f"{refusal.place}: {column}{refusal.code}: {refusal.reason}"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == Path("-"):
        yield sys.stdin.buffer
    else:
        with path.open("rb") as file:
            yield file


def _counted(file: BinaryIO, size: int, report: Report) -> Iterator[bytes]:
    """The lines of a file, with a progress bar by bytes."""
    done = 0
    for at, line in enumerate(file):
        done += len(line)
        if at % REPORT_LINES == 0:
            report(done, max(size, done))
        yield line


def export(options: argparse.Namespace) -> int:
    """`tamis subscriptions export`."""
    with _subscriptions(options) as catalog:
        written = (lines.write(item) for item in catalog.export(tenant=options.tenant))
        if options.output is None:
            sys.stdout.writelines(f"{line}\n" for line in written)
        else:
            with options.output.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in written)
    return 0


def put_prefixes(options: argparse.Namespace) -> int:
    """`tamis subscriptions prefixes put NAME FILE`."""
    with _catalog(options) as catalog:
        catalog.put_prefixes(PrefixMap(options.name, options.file, options.tenant))
    return 0


def list_prefixes(options: argparse.Namespace) -> int:
    """`tamis subscriptions prefixes list`."""
    with _catalog(options) as catalog:
        found = list(catalog.prefixes(tenant=options.tenant))
    if options.json:
        for one in found:
            print(lines.write(one))
    else:
        bindings = [(one, prefix, uri) for one in found for prefix, uri in one.prefixes.items()]
        rows = [(one.tenant, one.name, prefix, uri) for one, prefix, uri in bindings]
        print_table(("tenant", "name", "prefix", "uri"), rows)
    return 0


def remove_prefixes(options: argparse.Namespace) -> int:
    """`tamis subscriptions prefixes remove NAME`."""
    with _catalog(options) as catalog:
        if catalog.remove_prefixes(options.name, tenant=options.tenant):
            return 0
    print(f"tamis: there is no prefix map {options.name}", file=sys.stderr)
    return 1
