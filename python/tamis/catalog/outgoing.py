"""The queue of webhook deliveries: when each is due, and the result of each attempt.

A sender claims deliveries by a lease: it moves their due time to the end of the lease. If it dies, they are
due again then. So delivery is at least once.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, literal_column, select, tuple_, update

from tamis.catalog import rows
from tamis.catalog.database import Database
from tamis.catalog.schema import outgoing, webhooks
from tamis.catalog.stored_delivery import StoredDelivery, values_of
from tamis.catalog.webhooks import Key, disable, give_up, webhook_from
from tamis.model.webhook import Webhook, WebhookState

IDS = 5_000
"""Ids that one statement looks up."""

FAILED = "webhook-failed"
"""Dead letter code: the last attempt failed."""

GONE = "webhook-gone"
"""Dead letter code: the receiver answered 410."""


@dataclass(frozen=True, slots=True)
class Outbound(StoredDelivery):
    """A delivery in the queue."""

    webhook: str
    tries: int
    """Attempts so far."""

    @property
    def key(self) -> Key:
        """The key of its webhook."""
        return self.tenant, self.webhook


_COLUMNS = Outbound.__dataclass_fields__.keys()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt to send a delivery."""

    delivery: Outbound
    at: datetime
    failure: str | None = None
    """None: success."""
    next: datetime | None = None
    """When to retry; None: never."""
    held_until: datetime | None = None
    """Send nothing to the webhook before this time."""
    gone: bool = False
    """The receiver answered 410: disable the webhook."""

    @property
    def number(self) -> int:
        """The attempt number, from 1."""
        return self.delivery.tries + 1


class Outgoing:
    """The queue of webhook deliveries of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self) -> Sequence[tuple[Webhook, datetime]]:
        """Webhooks with queued deliveries, each with the earliest due time."""
        first = (
            select(func.min(outgoing.c.due))
            .where(
                outgoing.c.tenant == webhooks.c.tenant,
                outgoing.c.webhook == webhooks.c.name,
                outgoing.c.due.is_not(None),
            )
            .scalar_subquery()
        )
        found = select(webhooks, first.label("due"))

        def work(connection: Connection) -> Sequence[tuple[Webhook, datetime]]:
            return [
                (webhook_from(row), rows.time_of(row["due"]))
                for row in connection.execute(found).mappings()
                if row["due"] is not None
            ]

        return self._database.read(work)

    def claim(self, key: Key, now: datetime, until: datetime, limit: int) -> Sequence[Outbound]:
        """Lease due deliveries of a webhook to the caller until a time; oldest first."""
        tenant, name = key
        chosen = (
            select(outgoing.c.id)
            .where(
                outgoing.c.tenant == tenant,
                outgoing.c.webhook == name,
                outgoing.c.due <= rows.microseconds_of(now),
            )
            .order_by(outgoing.c.due)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )

        def work(connection: Connection) -> Sequence[Outbound]:
            ids = connection.execute(chosen).scalars().all()
            if not ids:
                return []
            leased = update(outgoing).where(outgoing.c.id.in_(ids)).values(due=rows.microseconds_of(until))
            found = connection.execute(leased.returning(*(outgoing.c[name] for name in _COLUMNS)))
            return [_outbound(row) for row in found.mappings()]

        return self._database.write_unversioned(work)

    def release(self, ids: Collection[str]) -> None:
        """End the lease of deliveries: they are due at once."""
        free = update(outgoing).where(outgoing.c.id.in_(ids), outgoing.c.due.is_not(None))
        self._database.write_unversioned(lambda connection: connection.execute(free.values(due=_now())))

    def record(self, attempts: Iterable[Attempt]) -> None:
        """Record the results of attempts. Idempotent."""
        ordered = sorted(attempts, key=lambda one: (one.delivery.key, one.at))

        def work(connection: Connection) -> None:
            # A fixed lock order, webhooks before deliveries, avoids deadlocks.
            for key, some in groupby(ordered, key=lambda one: one.delivery.key):
                group = list(some)
                _record_webhook(connection, key, group)
                for one in group:
                    _record_delivery(connection, one)
                for one in group:
                    if one.gone:
                        reason = f"{one.failure}: the receiver wants no more deliveries"
                        disable(connection, key, GONE, reason)

        self._database.write_unversioned(work)

    def count(self, tenant: str | None = None, webhook: str | None = None) -> int:
        """How many deliveries are queued: for one webhook, for a tenant, or in all."""
        chosen = select(func.count()).where(outgoing.c.due.is_not(None))
        if tenant is not None:
            chosen = chosen.where(outgoing.c.tenant == tenant)
        if webhook is not None:
            chosen = chosen.where(outgoing.c.webhook == webhook)
        return self._database.read(lambda connection: connection.execute(chosen).scalar_one())

    def counts(self, tenant: str) -> dict[str, int]:
        """How many deliveries are queued, for each webhook of a tenant that has any."""
        chosen = (
            select(outgoing.c.webhook, func.count().label("waiting"))
            .where(outgoing.c.tenant == tenant, outgoing.c.due.is_not(None))
            .group_by(outgoing.c.webhook)
        )
        return self._database.read(
            lambda connection: {row.webhook: row.waiting for row in connection.execute(chosen)}
        )

    def forget(self, before: datetime) -> int:
        """Remove deliveries that were sent before a time; how many."""
        old = delete(outgoing).where(
            # A literal, not a parameter: only then do databases choose the partial index.
            outgoing.c.state == literal_column("'sent'"),
            outgoing.c.ended < rows.microseconds_of(before),
        )
        return self._database.write_unversioned(lambda connection: connection.execute(old).rowcount)


def put(connection: Connection, deliveries: Sequence[dict[str, Any]]) -> int:
    """Queue new deliveries for their webhooks, ignoring those queued before; returns how many were new."""
    fresh = {row["id"]: row for row in deliveries}
    ids = list(fresh)
    for at in range(0, len(ids), IDS):
        some = select(outgoing.c.id).where(outgoing.c.id.in_(ids[at : at + IDS]))
        for id in connection.execute(some).scalars():
            del fresh[id]
    if not fresh:
        return 0
    keys = {(row["tenant"], row["webhook"]) for row in fresh.values()}
    by_key = tuple_(webhooks.c.tenant, webhooks.c.name)
    # A shared lock: a transaction that disables a webhook waits for this one, and then sees its deliveries.
    found = select(webhooks.c.tenant, webhooks.c.name, webhooks.c.state).where(by_key.in_(sorted(keys)))
    shared = connection.execute(found.with_for_update(read=True))
    states = {(row.tenant, row.name): row.state for row in shared}
    now = _now()
    connection.execute(
        insert(outgoing),
        [_new(row, states.get((row["tenant"], row["webhook"])), now) for row in fresh.values()],
    )
    return len(fresh)


def _new(row: dict[str, Any], state: str | None, now: int) -> dict[str, Any]:
    code = reason = None
    if state != WebhookState.ACTIVE:
        code = "webhook-removed" if state is None else "webhook-disabled"
        reason = f"webhook:{row['webhook']} is {'not there' if state is None else 'disabled'}"
    return row | {
        "state": "waiting" if code is None else "dying",
        "due": now if code is None else None,
        "tries": 0,
        "code": code,
        "reason": reason,
    }


def _record_webhook(connection: Connection, key: Key, attempts: Sequence[Attempt]) -> None:
    """Record in the webhook when attempts last succeeded and failed."""
    values: dict[str, Any] = {}
    for one in attempts:
        at = rows.microseconds_of(one.at)
        if one.failure is None:
            values["succeeded"] = at
        else:
            values |= {"failed": at, "failure": one.failure}
        if one.held_until is not None:
            values["held_until"] = rows.microseconds_of(one.held_until)
    tenant, name = key
    chosen = update(webhooks).where(webhooks.c.tenant == tenant, webhooks.c.name == name)
    connection.execute(chosen.values(values))


def _record_delivery(connection: Connection, one: Attempt) -> None:
    """Record the state of a delivery after an attempt."""
    chosen = update(outgoing).where(outgoing.c.id == one.delivery.id)
    if one.failure is None:
        # Also if the webhook was disabled in the meantime: the delivery has arrived.
        not_claimed = outgoing.c.letter_batch.is_(None)
        sent = {"state": "sent", "payload": b"", "due": None, "ended": rows.microseconds_of(one.at)}
        connection.execute(chosen.where(not_claimed).values(tries=one.number, **sent))
    elif one.next is not None:
        waits = chosen.where(outgoing.c.due.is_not(None))
        connection.execute(
            waits.values(tries=one.number, due=rows.microseconds_of(one.next), reason=one.failure)
        )
    else:
        tried = "once" if one.number == 1 else f"{one.number} times"
        code = GONE if one.gone else FAILED
        give_up(
            connection,
            outgoing.c.id == one.delivery.id,
            code,
            f"tried {tried}; the last time: {one.failure}",
            one.number,
        )


def _now() -> int:
    return time.time_ns() // 1000


def _outbound(row: RowMapping) -> Outbound:
    return Outbound(**values_of(row))
