"""Webhook deliveries that failed for good: moved to the dead letters, and sent again on request.

Deliveries move in batches. A batch is recorded before its letters are published, so that after an
interruption the same letters are published again under the same name, which is idempotent.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal_column, select, update

from tamis.catalog import rows
from tamis.catalog.database import Database
from tamis.catalog.mailbox import CHUNK, CHUNK_BYTES
from tamis.catalog.schema import outgoing, webhooks
from tamis.model.webhook import WebhookState, target_of

_DYING = outgoing.c.state == literal_column("'dying'")
"""A literal, not a parameter: only then do databases choose the partial index."""

_LETTER = ("tenant", "source", "received", "encoding", "headers", "code", "reason", "subscription")


class DeadDeliveries:
    """The failed webhook deliveries of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_batches(self) -> Sequence[str]:
        """The batches to move; failed deliveries without a batch get a new one first."""
        table = outgoing.c
        new = (
            select(table.id, func.length(table.payload).label("size"))
            .where(_DYING, table.letter_batch.is_(None))
            .limit(CHUNK)
            .with_for_update(skip_locked=True)
        )

        def work(connection: Connection) -> Sequence[str]:
            ids, size = [], 0
            for row in connection.execute(new):
                ids.append(row.id)
                size += row.size
                if size >= CHUNK_BYTES:
                    break
            if ids:
                chosen = update(outgoing).where(table.id.in_(ids))
                connection.execute(chosen.values(letter_batch=uuid.uuid4().hex))
            pending = select(table.letter_batch).where(_DYING, table.letter_batch.is_not(None)).distinct()
            return [str(batch) for batch in connection.execute(pending).scalars()]

        # Read first: without failed deliveries no write lock is taken.
        any_dying = select(table.id).where(_DYING).limit(1)
        found = self._database.read(lambda connection: connection.execute(any_dying).first())
        return [] if found is None else self._database.write_unversioned(work)

    def letters(self, batch: str) -> list[dict[str, Any]]:
        """The dead letters of a batch, rows of `LETTER`."""
        chosen = select(outgoing).where(_DYING, outgoing.c.letter_batch == batch).order_by(outgoing.c.id)

        def work(connection: Connection) -> list[dict[str, Any]]:
            return [
                {name: row[name] for name in _LETTER}
                | {
                    "id": row["message"],
                    "offset": target_of(row["webhook"]),
                    "received": rows.time_of(row["received"]),
                    "delivery": row["id"],
                    "raw": row["payload"],
                }
                for row in connection.execute(chosen).mappings()
            ]

        return self._database.read(work)

    def finish(self, batch: str) -> None:
        """The letters of a batch are published: drop their payloads."""
        done = update(outgoing).where(_DYING, outgoing.c.letter_batch == batch)
        values = {"state": "dead", "payload": b"", "ended": _now()}
        self._database.write_unversioned(lambda connection: connection.execute(done.values(values)))

    def resend(self, payloads: Iterable[tuple[str, bytes]]) -> Mapping[str, str]:
        """Queue dead deliveries again, given as (id, payload of the letter); the number of attempts restarts.

        Returns the reason for each that is not queued, by id.
        """
        reasons: dict[str, str] = {}
        for chunk in _chunks(payloads):
            reasons |= self._database.write_unversioned(partial(_resend, chunk))
        return reasons


def _resend(payloads: Mapping[str, bytes], connection: Connection) -> dict[str, str]:
    """The reason for each delivery that is not queued, by id."""
    found = (
        select(outgoing.c.id, outgoing.c.webhook, outgoing.c.state, webhooks.c.state.label("webhook_state"))
        .outerjoin_from(
            outgoing,
            webhooks,
            (webhooks.c.tenant == outgoing.c.tenant) & (webhooks.c.name == outgoing.c.webhook),
        )
        .where(outgoing.c.id.in_(payloads))
    )
    reasons = dict.fromkeys(payloads, "the catalog does not have this delivery")
    for row in connection.execute(found):
        target = target_of(row.webhook)
        if row.state != "dead":
            reasons[row.id] = "it was delivered" if row.state == "sent" else f"it is queued for {target}"
        elif row.webhook_state != WebhookState.ACTIVE:
            gone = row.webhook_state is None
            reasons[row.id] = f"{target} is {'removed' if gone else 'disabled'}; create or enable it first"
        else:
            del reasons[row.id]
    values = {"state": "waiting", "due": _now(), "tries": 0}
    nothing = {"code": None, "reason": None, "letter_batch": None, "ended": None}
    again = update(outgoing).where(outgoing.c.id == bindparam("which"))
    queued_again = [{"which": id, "what": raw} for id, raw in payloads.items() if id not in reasons]
    if queued_again:
        connection.execute(again.values(payload=bindparam("what"), **values, **nothing), queued_again)
    return reasons


def _chunks(payloads: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    """Payloads in chunks that fit in memory."""
    remaining = iter(payloads)
    while some := dict(islice(remaining, 1)):
        size = 0
        for id, raw in islice(remaining, CHUNK - 1):
            some[id] = raw
            size += len(raw)
            if size >= CHUNK_BYTES:
                break
        yield some


def _now() -> int:
    return time.time_ns() // 1000
