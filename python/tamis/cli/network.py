"""`tamis network`: the network of brokers."""

import argparse
from pathlib import Path

from tamis.cli.tables import print_table
from tamis.network.topology import DEFAULT_FILE, TopologyError, read_topology


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
