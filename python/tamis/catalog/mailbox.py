"""Mailboxes: deliveries that subscribers fetch and acknowledge. Each delivery is stored once."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from tamis.catalog import outgoing, rows
from tamis.catalog.database import Database
from tamis.catalog.schema import mailbox, mailbox_head, tailed
from tamis.catalog.stored_delivery import StoredDelivery, to_row, values_of
from tamis.model.webhook import webhook_of

FETCHED = 10
"""Rows fetched at a time from a database server."""

CHUNK = 1_000
CHUNK_BYTES = 16 << 20
"""Deliveries in memory at a time, and about how many bytes of their payloads."""


RowWithPayload = TypeVar("RowWithPayload", dict[str, Any], RowMapping)


@dataclass(frozen=True, slots=True)
class Delivery(StoredDelivery):
    """A delivery in a mailbox."""

    number: int
    """Ascending in the order of arrival; the cursor of a subscriber."""


_COLUMNS = Delivery.__dataclass_fields__.keys()


class Mailbox:
    """All mailboxes of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def imported_manifests(self) -> set[str]:
        """The manifests of the outbox whose deliveries are stored."""
        return self._database.read(
            lambda connection: set(connection.execute(select(tailed.c.manifest)).scalars())
        )

    def store(self, manifest: str, deliveries: Iterable[dict[str, Any]]) -> int:
        """Store the deliveries of a manifest, rows of `DELIVERY`; returns how many were new.

        Deliveries with a webhook as target go to `outgoing`, others to mailboxes. Idempotent by
        manifest and by delivery id: after an interruption, call it again.
        """
        if self._database.read(lambda connection: _is_tailed(connection, manifest)):
            return 0
        remaining = map(_row, deliveries)
        count = 0
        while some := _chunk(remaining, CHUNK):
            count += self._database.write_unversioned(partial(_store, some))
        self._database.write_unversioned(partial(_mark, manifest))
        return count

    def forget_manifests(self, manifests: Collection[str]) -> None:
        """Delete the records of manifests that the outbox no longer has."""

        def work(connection: Connection) -> None:
            for chunk in rows.chunks(manifests):
                connection.execute(delete(tailed).where(tailed.c.manifest.in_(chunk)))

        self._database.write_unversioned(work)

    def pending(
        self, tenant: str, subscriber: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[Delivery]:
        """Unacknowledged deliveries of a subscriber after a number, in order.

        Returns at least one if any is pending; fewer than `limit` if they are large.
        """
        table = mailbox.c
        page = (
            select(*(table[name] for name in _COLUMNS))
            .where(
                table.tenant == tenant,
                table.subscriber == subscriber,
                table.acknowledged.is_(None),
                table.number > after,
            )
            .order_by(table.number)
            .limit(limit)
        )

        def work(connection: Connection) -> Sequence[Delivery]:
            with connection.execution_options(stream_results=True).execute(page) as streamed:
                return [_delivery(row) for row in _chunk(streamed.yield_per(FETCHED).mappings(), limit)]

        return self._database.read(work)

    def acknowledge(
        self, tenant: str, subscriber: str, *, ids: Collection[str] = (), until: int | None = None
    ) -> int:
        """Acknowledge these deliveries, or all up to a number; returns how many."""
        table = mailbox.c
        whose = (table.tenant == tenant, table.subscriber == subscriber, table.acknowledged.is_(None))
        now = time.time_ns() // 1000

        def work(connection: Connection) -> int:
            done = update(mailbox).where(*whose).values(acknowledged=now)
            count = 0
            for chunk in rows.chunks(ids):
                count += connection.execute(done.where(table.id.in_(chunk))).rowcount
            if until is not None:
                count += connection.execute(done.where(table.number <= until)).rowcount
            return count

        return self._database.write_unversioned(work)

    def count(self, tenant: str, subscriber: str | None = None) -> int:
        """Count the pending deliveries of a tenant, or of one of its subscribers."""
        table = mailbox.c
        chosen = select(func.count()).where(table.tenant == tenant, table.acknowledged.is_(None))
        if subscriber is not None:
            chosen = chosen.where(table.subscriber == subscriber)
        return self._database.read(lambda connection: connection.execute(chosen).scalar_one())

    def forget(self, before: datetime) -> int:
        """Remove deliveries that were acknowledged before a time; returns how many."""
        old = delete(mailbox).where(mailbox.c.acknowledged < rows.microseconds_of(before))
        return self._database.write_unversioned(lambda connection: connection.execute(old).rowcount)


def _chunk(rows: Iterable[RowWithPayload], limit: int) -> list[RowWithPayload]:
    """The next rows: at most `limit`, and about `CHUNK_BYTES` of payload."""
    chunk: list[RowWithPayload] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row["payload"])
        if len(chunk) >= limit or size >= CHUNK_BYTES:
            break
    return chunk


def _is_tailed(connection: Connection, manifest: str) -> bool:
    return connection.execute(select(tailed).where(tailed.c.manifest == manifest)).first() is not None


def _mark(manifest: str, connection: Connection) -> None:
    # Locks the head row: other writers of mailboxes wait.
    connection.execute(update(mailbox_head).values(number=mailbox_head.c.number))
    if not _is_tailed(connection, manifest):
        connection.execute(insert(tailed).values(manifest=manifest))


def _store(deliveries: Sequence[dict[str, Any]], connection: Connection) -> int:
    """Store deliveries in mailboxes or for webhooks, in one transaction."""
    kept = [{**row} for row in deliveries if row["webhook"] is None]
    for row in kept:
        del row["webhook"]
    sent = [row for row in deliveries if row["webhook"] is not None]
    # `_insert_new` locks the head row first, so that other writers of the same deliveries wait.
    return _insert_new(kept, connection) + outgoing.put(connection, sent)


def _insert_new(deliveries: Sequence[dict[str, Any]], connection: Connection) -> int:
    """Insert the deliveries that are not stored yet, with the next numbers."""
    raised = update(mailbox_head).values(number=mailbox_head.c.number + len(deliveries))
    end = connection.execute(raised.returning(mailbox_head.c.number)).scalar_one()
    known = _stored_ids(connection, [row["id"] for row in deliveries])
    fresh = {row["id"]: row for row in deliveries if row["id"] not in known}
    new = [row | {"number": number} for number, row in enumerate(fresh.values(), end - len(deliveries) + 1)]
    if new:
        connection.execute(insert(mailbox), new)
    return len(new)


def _stored_ids(connection: Connection, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for chunk in rows.chunks(ids):
        found.update(connection.execute(select(mailbox.c.id).where(mailbox.c.id.in_(chunk))).scalars())
    return found


def _row(delivery: dict[str, Any]) -> dict[str, Any]:
    return to_row(delivery) | {"webhook": webhook_of(delivery["delivery_target"])}


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(**values_of(row))
