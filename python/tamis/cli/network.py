"""`tamis network check|status|explain`: the network of brokers."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tamis.cli.documents import DocumentError, read_document
from tamis.cli.inputs import add_header, envelope_of
from tamis.cli.tables import print_table
from tamis.errors import ReadError
from tamis.extras import require
from tamis.network.topology import DEFAULT_FILE, TopologyError, read_topology
from tamis.settings import load_settings
from tamis.status import LinkReport, StatusError, read_status

TITLES = (
    *("link", "neighbour", "state", "sent", "messages", "of", "bytes", "received", "in vain", "waiting"),
    *("routes", ""),
)

RUNS, RUNS_NOT, FAILS = 0, 3, 4
"""Exit codes of `status`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("check", help="check a network file and print its links")
    one.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=Path(DEFAULT_FILE),
        metavar="FILE",
        help=f"default: {DEFAULT_FILE}",
    )
    one.set_defaults(run=check)
    one = commands.add_parser("explain", help="show which links of the broker a message crosses, and why")
    one.add_argument("document", metavar="DOC", help="`-`: standard input; *.gz is decompressed")
    one.add_argument("--tenant", default="", metavar="NAME", help="default: the tenant without a name")
    add_header(one)
    one.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    one.add_argument("--json", action="store_true", help="one line of JSON each link")
    one.set_defaults(run=explain)
    one = commands.add_parser("status", help="show the links of the broker that runs here")
    one.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    one.add_argument("--state", type=Path, metavar="DIR", help="state directory of the job, or TAMIS_STATE")
    one.add_argument("--json", action="store_true", help="one line of JSON each link")
    one.set_defaults(run=status)
    one.epilog = (
        f"Exit code: {RUNS} all links work, {RUNS_NOT} the job is not running, {FAILS} a link does not."
    )


def check(options: argparse.Namespace) -> int:
    """`tamis network check [FILE]`: its links, or every problem of the file and the exit code 1."""
    try:
        topology = read_topology(options.file)
    except TopologyError as error:
        for problem in error.problems:
            print(problem)
        return 1
    brokers = [
        [name, ", ".join(link.other(name) for link in topology.links_of(name))] for name in topology.brokers
    ]
    links = [
        [
            *link.ends,
            link.carrier.kind,
            link.carrier.location,
            str(link.cost),
            "all" if link.tenants is None else ", ".join(sorted(link.tenants)),
        ]
        for link in topology.links
    ]
    print_table(["", "broker", "linked to"], [["broker", *row] for row in brokers], whole=["broker"])
    if links:
        titles = ["", "end", "other end", "carrier", "location", "cost", "tenants"]
        print_table(titles, [["link", *row] for row in links], whole=["end", "other end", "carrier"])
    return 0


def explain(options: argparse.Namespace) -> int:
    """`tamis network explain DOC`: which links a message crosses that enters the network here, and why."""
    require("catalog")
    from tamis.cli.crossing import crossings

    settings = load_settings(options.config)
    if settings.broker is None:
        print("this job is no broker: its settings have no [broker]", file=sys.stderr)
        return 1
    try:
        message = read_document(options.document, settings.broker.limits.document)
        found = crossings(settings, settings.broker, message, envelope_of(options), options.tenant)
    except (DocumentError, ReadError) as error:
        print(f"{options.document}: {error.reason}", file=sys.stderr)
        return 1
    if options.json:
        for one in found:
            print(json.dumps(asdict(one), ensure_ascii=False))
    else:
        rows = [[one.link, one.neighbour, "crosses" if one.crosses else "stays", one.why] for one in found]
        print_table(["link", "neighbour", "", "why"], rows, whole=["link", "neighbour"])
    return 0


def status(options: argparse.Namespace) -> int:
    """`tamis network status`: the links of the broker, as its job reported them last."""
    try:
        found = read_status(load_settings(options.config, {"state": options.state}).state)
    except StatusError as error:
        print(f"tamis: {error}", file=sys.stderr)
        return RUNS_NOT
    if options.json:
        for link in found.links:
            print(json.dumps(asdict(link), ensure_ascii=False))
    elif found.links:
        print_table(TITLES, list(map(_cells, found.links)), whole=["link", "state"])
    else:
        print("this job is no broker: its settings have no [broker]", file=sys.stderr)
    if not found.alive:
        return RUNS_NOT
    return RUNS if all(link.state == "up" for link in found.links) else FAILS


def _cells(link: LinkReport) -> list[str]:
    sent = "what is wanted" if link.routed else "everything"
    counts = (link.messages, link.offered, link.bytes, link.received, link.in_vain, link.waiting, link.routes)
    pending = "" if link.agreed else "what is wanted here is not in force there yet"
    if link.pressed:
        pending = "sources wait: the log is full, or that of a link behind it"
    problem = f"{link.code}: {link.reason}" if link.code else link.reason
    return [link.link, link.neighbour, link.state, sent, *map(str, counts), problem or pending]
