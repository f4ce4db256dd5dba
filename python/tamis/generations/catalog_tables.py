"""The catalog → tables of the relational engine: only what changed since they were written."""

import json
import logging
import shutil
from pathlib import Path

import pyarrow as pa

from tamis.catalog import Catalog
from tamis.relational.tables import MANIFEST, Tables

log = logging.getLogger(__name__)


def update_tables(catalog: Catalog, directory: Path) -> Tables:
    """The tables of a directory, brought up to the catalog; made anew if they are those of another one.

    Queries that this version refuses are logged and left out. Do not call it twice at a time for a directory.
    """
    tables = Tables.open(directory) if (directory / MANIFEST).exists() else Tables.create(directory)
    since = tables.version
    with catalog.changes(since) as changes:
        if since is not None and (changes.since is None or changes.catalog != tables.catalog):
            log.warning("the tables of %s are of another catalog or too old: they are built anew", directory)
            shutil.rmtree(directory)
            return update_tables(catalog, directory)
        if since == changes.version:
            return tables
        batches = [batch for batch in changes.added if batch.num_rows]
        added, namespaces = None, None
        if batches:
            rows = pa.Table.from_batches(batches).combine_chunks()
            prefixes = rows.column("prefixes").combine_chunks().dictionary_encode()
            added = pa.table(
                {
                    "target": rows.column("number"),
                    "query": rows.column("query"),
                    "tenant": rows.column("tenant"),
                    "prefixes": prefixes.indices.cast(pa.uint32()),
                }
            )
            namespaces = [json.loads(str(text)) for text in prefixes.dictionary.to_pylist()]
        refused = tables.change(
            added, changes.removed, catalog=changes.catalog, version=changes.version, namespaces=namespaces
        )
        for one in refused:
            log.warning("row %d is left out: %s: %s", one.query, one.code, one.reason)
    return tables
