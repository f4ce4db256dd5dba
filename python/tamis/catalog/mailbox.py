"""The mailboxes: deliveries that wait for their subscribers, each there once."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from tamis.catalog import outgoing, rows
from tamis.catalog.database import Database
from tamis.catalog.delivered import Delivered, to_row, values_of
from tamis.catalog.schema import mailbox, mailbox_head, tailed
from tamis.model.webhook import webhook_of

IDS = 5_000
"""So many are looked up by one statement."""

FETCHED = 10
"""So many are fetched at a time from a database that is elsewhere."""

PIECE = 1_000
PIECE_BYTES = 16 << 20
"""So many deliveries, and about so many bytes of payload, go in or out together: they are in memory then."""


Payloaded = TypeVar("Payloaded", dict[str, Any], RowMapping)
"""A row with a payload."""


@dataclass(frozen=True, slots=True)
class Delivery(Delivered):
    """A delivery in a mailbox."""

    number: int
    """Ascending in the order of arrival: what a cursor is made of."""


_COLUMNS = Delivery.__dataclass_fields__.keys()


class Mailbox:
    """All mailboxes of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tailed(self) -> set[str]:
        """The manifests whose deliveries are here."""
        return self._database.read(
            lambda connection: set(connection.execute(select(tailed.c.manifest)).scalars())
        )

    def take(self, manifest: str, deliveries: Iterable[dict[str, Any]]) -> int:
        """Put the deliveries of a publication, rows of `DELIVERY`, into their mailboxes; how many were new.

        Those whose target names a webhook are to be sent instead.

        What is here already, by manifest or by delivery id, stays as it is: who was interrupted begins again.
        """
        if self._database.read(lambda connection: _is_tailed(connection, manifest)):
            return 0
        remaining = map(_row, deliveries)
        count = 0
        while some := _piece(remaining, PIECE):
            count += self._database.write_aside(partial(_take, some))
        self._database.write_aside(partial(_mark, manifest))
        return count

    def forget_manifests(self, manifests: Collection[str]) -> None:
        """Publications that are in the outbox no more."""
        wanted = list(manifests)

        def work(connection: Connection) -> None:
            for at in range(0, len(wanted), IDS):
                gone = tailed.c.manifest.in_(wanted[at : at + IDS])
                connection.execute(delete(tailed).where(gone))

        self._database.write_aside(work)

    def waiting(
        self, tenant: str, subscriber: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[Delivery]:
        """Deliveries that a subscriber has not acknowledged, those after a number, in their order.

        There may be fewer than `limit` though more wait, if they are large; there is one at least.
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
                return [_delivery(row) for row in _piece(streamed.yield_per(FETCHED).mappings(), limit)]

        return self._database.read(work)

    def acknowledge(
        self, tenant: str, subscriber: str, *, ids: Collection[str] = (), until: int | None = None
    ) -> int:
        """A subscriber has what it was sent: these deliveries, or all up to a number; how many that were."""
        table = mailbox.c
        whose = (table.tenant == tenant, table.subscriber == subscriber, table.acknowledged.is_(None))
        now = time.time_ns() // 1000
        wanted = list(ids)

        def work(connection: Connection) -> int:
            done = update(mailbox).where(*whose).values(acknowledged=now)
            count = 0
            for at in range(0, len(wanted), IDS):
                count += connection.execute(done.where(table.id.in_(wanted[at : at + IDS]))).rowcount
            if until is not None:
                count += connection.execute(done.where(table.number <= until)).rowcount
            return count

        return self._database.write_aside(work)

    def count(self, tenant: str, subscriber: str | None = None) -> int:
        """How many deliveries of a tenant, or of one of its subscribers, wait."""
        table = mailbox.c
        chosen = select(func.count()).where(table.tenant == tenant, table.acknowledged.is_(None))
        if subscriber is not None:
            chosen = chosen.where(table.subscriber == subscriber)
        return self._database.read(lambda connection: connection.execute(chosen).scalar_one())

    def forget(self, before: datetime) -> int:
        """Remove deliveries that were acknowledged before a time; how many."""
        old = delete(mailbox).where(mailbox.c.acknowledged < rows.microseconds_of(before))
        return self._database.write_aside(lambda connection: connection.execute(old).rowcount)


def _piece(rows: Iterable[Payloaded], limit: int) -> list[Payloaded]:
    """The next rows: so many, and not many bytes more than are allowed."""
    piece: list[Payloaded] = []
    size = 0
    for row in rows:
        piece.append(row)
        size += len(row["payload"])
        if len(piece) >= limit or size >= PIECE_BYTES:
            break
    return piece


def _is_tailed(connection: Connection, manifest: str) -> bool:
    return connection.execute(select(tailed).where(tailed.c.manifest == manifest)).first() is not None


def _mark(manifest: str, connection: Connection) -> None:
    # Others who fill mailboxes wait; so nobody else marks it meanwhile.
    connection.execute(update(mailbox_head).values(number=mailbox_head.c.number))
    if not _is_tailed(connection, manifest):
        connection.execute(insert(tailed).values(manifest=manifest))


def _take(given: Sequence[dict[str, Any]], connection: Connection) -> int:
    """Each to where it belongs, all or nothing."""
    kept = [{**row} for row in given if row["webhook"] is None]
    for row in kept:
        del row["webhook"]
    sent = [row for row in given if row["webhook"] is not None]
    # The first also has others wait who take the same.
    return _put(kept, connection) + outgoing.put(connection, sent)


def _put(given: Sequence[dict[str, Any]], connection: Connection) -> int:
    """Insert what is not there yet, with the next numbers."""
    raised = update(mailbox_head).values(number=mailbox_head.c.number + len(given))
    end = connection.execute(raised.returning(mailbox_head.c.number)).scalar_one()
    known = _known(connection, [row["id"] for row in given])
    fresh = {row["id"]: row for row in given if row["id"] not in known}
    new = [row | {"number": number} for number, row in enumerate(fresh.values(), end - len(given) + 1)]
    if new:
        connection.execute(insert(mailbox), new)
    return len(new)


def _known(connection: Connection, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for at in range(0, len(ids), IDS):
        some = select(mailbox.c.id).where(mailbox.c.id.in_(ids[at : at + IDS]))
        found.update(connection.execute(some).scalars())
    return found


def _row(delivery: dict[str, Any]) -> dict[str, Any]:
    return to_row(delivery) | {"webhook": webhook_of(delivery["delivery_target"])}


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(**values_of(row))
