"""What a generation must show: the catalog, at the version that it says."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa

import tamis
from tamis.catalog import Catalog, schema
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.model.subscription import Refusal
from tamis.model.version import Version

Shown = dict[int, tuple[str, str, int, str, str]]
"""By number: tenant, id, revision, subscriber, delivery target."""

MESSAGE = b"<a/>"
"""What every query of these tests matches."""


def active(catalog: Catalog) -> Shown:
    """What a generation made now must show."""
    with catalog.changes(None) as changes:
        return shown_in(list(changes.added))


def shown_in(batches: list[pa.RecordBatch]) -> Shown:
    """Rows, by number."""
    fields = ("tenant", "id", "revision", "subscriber", "delivery_target")
    rows = (row for batch in batches for row in batch.to_pylist())
    return {row["number"]: tuple(row[name] for name in fields) for row in rows}


def shown(store: Store, number: int, cache: Path, tenants: tuple[str, ...] = ("", "t")) -> Shown:
    """What a generation shows to who fetches it: those that match, and whose they are."""
    directory = store.fetch(number, cache)
    index, subscriptions = tamis.Index.open(directory, number), Subscriptions.open(directory, number)
    found = [pa.array(index.match(MESSAGE, tenant=tenant), pa.uint64()) for tenant in tenants]
    rows = shown_in([subscriptions.look_up(numbers) for numbers in found])
    assert len(rows) == index.stats().targets
    return rows


def version_of(catalog: Catalog, count: int) -> Version:
    """A version of a catalog by its count alone; with no mark if the catalog does not remember it."""
    mark = sa.select(schema.versions.c.mark).where(schema.versions.c.version == count)
    found = catalog._database.read(lambda connection: connection.execute(mark).scalar())
    return Version(count, found or "")


def backup(catalog: Catalog) -> Callable[[], None]:
    """What restores a catalog as it is now, in whichever database."""
    tables = schema.metadata.sorted_tables

    def copy(connection: sa.Connection) -> list[list[dict[str, object]]]:
        return [[dict(row) for row in connection.execute(sa.select(one)).mappings()] for one in tables]

    copied = catalog._database.read(copy)

    def restore(connection: sa.Connection) -> None:
        for table in reversed(tables):
            connection.execute(table.delete())
        for table, rows in zip(tables, copied, strict=True):
            if rows:
                connection.execute(table.insert(), rows)

    return lambda: catalog._database.write_unversioned(restore)


def unexpected(refusal: Refusal) -> None:
    """No line is to be refused."""
    raise AssertionError(refusal)
