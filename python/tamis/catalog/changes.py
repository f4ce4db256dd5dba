"""The changes of a catalog since a version: the input of the next generation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, literal, select

from tamis.catalog.data_uses import used_data
from tamis.catalog.database import identity_and_version
from tamis.catalog.routes import route_tables_of
from tamis.catalog.schema import prefix_maps, removals, routes, subscriptions, versions
from tamis.model.data_set import UsedData
from tamis.model.route import ROUTE_REVISION
from tamis.model.subscription import State
from tamis.model.version import Version
from tamis.network.tables import TableVersion

ROWS = 50_000
"""Rows of one record batch."""

_TEXT: pa.DataType = pa.large_string()
_NUMBER: pa.DataType = pa.uint64()

ADDED = pa.schema(
    {
        "number": _NUMBER,
        "id": _TEXT,
        "revision": _NUMBER,
        "tenant": _TEXT,
        "subscriber": _TEXT,
        "delivery_target": _TEXT,
        "query": _TEXT,
        "prefixes": _TEXT,
    }
)
"""Active subscriptions; `prefixes` are a JSON object, their own or those of the map they name.

And routes: `id` is the name of a link, and the revision is `ROUTE_REVISION`.
"""


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between two versions of a catalog. Apply removals first."""

    catalog: str
    """The identity of the catalog."""
    version: Version
    """The version that the changes lead to."""
    since: Version | None
    """The version that they start from; None: from an empty catalog."""
    removed: Sequence[int]
    """Numbers that no longer match; some may be unknown to the reader."""
    added: Iterator[pa.RecordBatch]
    """Batches of `ADDED`, oldest first."""
    tables: Mapping[str, TableVersion]
    """The version of each neighbour's table of routes, by link."""
    routes: int
    """How many routes this version has in all."""
    data: Sequence[UsedData] = ()
    """The local data that subscriptions name, by tenant and name."""


def changes_since(connection: Connection, since: Version | None) -> Changes:
    """The changes since a version, or from an empty catalog if the log does not reach back to it."""
    identity, version = identity_and_version(connection)
    if since is not None and since.mark != _mark(connection, since.count):
        since = None
    removed: list[int] = []
    if since is not None and since != version:
        logged = select(removals.c.number).distinct().where(removals.c.version > since.count)
        removed = list(connection.execute(logged.order_by(removals.c.number)).scalars())
    tables, count = route_tables_of(connection)
    added, data = _added(connection, since), used_data(connection)
    return Changes(identity, version, since, removed, added, tables, count, data)


def _mark(connection: Connection, count: int) -> str | None:
    """The mark of a version; None if the log does not have it."""
    return connection.execute(select(versions.c.mark).where(versions.c.version == count)).scalar()


def _added(connection: Connection, since: Version | None) -> Iterator[pa.RecordBatch]:
    table = subscriptions.c
    shared = and_(prefix_maps.c.tenant == table.tenant, prefix_maps.c.name == table.prefix_map)
    prefixes = case((table.prefix_map.is_(None), table.prefixes), else_=prefix_maps.c.prefixes)
    columns = [getattr(table, name) for name in ADDED.names if name != "prefixes"]
    active = (
        select(*columns, prefixes)
        .select_from(subscriptions.outerjoin(prefix_maps, shared))
        .where(table.state == State.ACTIVE.value)
    )
    none = literal("")
    route: dict[str, ColumnElement[Any]] = dict(routes.c.items()) | {"id": routes.c.link}
    route |= {"revision": literal(ROUTE_REVISION), "prefixes": literal("{}")}
    route |= {"subscriber": none, "delivery_target": none}
    routing = select(*(route[name] for name in ADDED.names))
    yield from _streamed(connection, _since(active, subscriptions, since))
    yield from _streamed(connection, _since(routing, routes, since))


def _since(chosen: Select[Any], table: Table, since: Version | None) -> Select[Any]:
    """The rows that are newer than a version, the oldest first."""
    if since is None:
        return chosen.order_by(table.c.number)
    # The order of the index; with another order SQLite scans the whole table.
    return chosen.where(table.c.version > since.count).order_by(table.c.version, table.c.number)


def _streamed(connection: Connection, chosen: Select[Any]) -> Iterator[pa.RecordBatch]:
    streamed = connection.execution_options(stream_results=True).execute(chosen)
    for rows in streamed.yield_per(ROWS).partitions():
        yield _batch(rows)


def _batch(rows: Sequence[Any]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), ADDED, strict=True)
    return pa.record_batch([pa.array(values, field.type) for values, field in columns], schema=ADDED)
