"""`tamis shards`: the shards of the newest generation, and which of them a message visits."""

import argparse
from pathlib import Path
from typing import Any

from tamis.cli.tables import print_table
from tamis.settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommands."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list the shards of the newest generation")
    listed.set_defaults(run=list_shards)
    shown = actions.add_parser("show", help="show which shards a message visits")
    shown.add_argument("message", type=Path, metavar="MESSAGE", help="a file with one message")
    shown.add_argument("--tenant", default="", help="the tenant of the message")
    shown.set_defaults(run=show_visited)


def list_shards(options: argparse.Namespace) -> int:
    """`tamis shards list`."""
    rows = []
    manifest, _ = _newest(options)
    for at, shard in enumerate(manifest.layout.shards if manifest.layout else ()):
        size = sum(manifest.files[name].size for name in shard.files)
        remark = "" if shard.first else "takes the changes"
        if shard.name in manifest.layout.damaged:
            remark = "its summary is damaged"
        rows.append([str(at), str(shard.rows), str(shard.queries), str(size), shard.name, remark])
    if not rows:
        print(f"generation {manifest.number} has one shard")
        return 0
    print_table(["shard", "subscriptions", "queries", "bytes", "name", "remark"], rows, whole=["name"])
    return 0


def show_visited(options: argparse.Namespace) -> int:
    """`tamis shards show`: a line for each shard that the message visits, with how many queries match."""
    # Imported here: the list needs no kernel.
    from tamis.engine import Index

    manifest, directory = _newest(options)
    index = Index.open(directory, manifest.number)
    message = options.message.read_bytes()
    matches = index.match_batch([message], tenant=options.tenant)
    if matches["code"][0].is_valid:
        print(f"{options.message}\tERROR {matches['code'][0]}: {matches['reason'][0]}")
        return 1
    visited: Any = index.route([message], tenant=options.tenant)
    queries = matches["queries"][0].as_py() or []
    first = 0
    for at, (name, count, _) in enumerate(index.shards):
        if at in visited["shards"][0].as_py():
            matching = sum(first <= query < first + count for query in queries)
            print(f"shard {at}\t{name}\t{matching} of {count} queries match")
        first += count
    print(f"{visited['probes'][0]} values looked up")
    return 0


def _newest(options: argparse.Namespace) -> tuple[Any, Path]:
    """The manifest of the newest generation, and the directory of its files."""
    from tamis.errors import StoreError
    from tamis.generations.store import Store

    settings = load_settings(options.config)
    store = Store(settings.generations)
    number = store.newest()
    if number is None:
        raise StoreError("no-generation", f"{store.url} has no generation yet: start the job")
    return store.manifest(number), store.fetch(number, settings.cache)
