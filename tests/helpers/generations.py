"""The expected content of a generation: the subscriptions of the catalog at its version."""

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
"""A message that every query of these tests matches."""


def active(catalog: Catalog) -> Shown:
    """The subscriptions that a generation compiled now must have."""
    with catalog.changes(None) as changes:
        return shown_in(list(changes.added))


def shown_in(batches: list[pa.RecordBatch]) -> Shown:
    """Rows, by number."""
    fields = ("tenant", "id", "revision", "subscriber", "delivery_target")
    rows = (row for batch in batches for row in batch.to_pylist())
    return {row["number"]: tuple(row[name] for name in fields) for row in rows}


def shown(store: Store, number: int, cache: Path, tenants: tuple[str, ...] = ("", "t")) -> Shown:
    """The subscriptions of a generation that match, as a process that fetches it finds them."""
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
    """Copy the tables of a catalog; returns a function that restores them."""
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
    """Fail: no line may be refused."""
    raise AssertionError(refusal)
