"""Deliveries that could not be made: on their way to the dead letters, and back.

A burial is some of them that become letters together. It is noted first which these are: who is
interrupted publishes the same letters again, which counts once.
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
from tamis.catalog.mailbox import PIECE, PIECE_BYTES
from tamis.catalog.schema import outgoing, webhooks
from tamis.model.webhook import WebhookState, target_of

_DYING = outgoing.c.state == literal_column("'dying'")
"""As it stands in the index: a database does not look into parameters to choose one."""

_LETTER = ("tenant", "source", "received", "encoding", "code", "reason", "subscription")


class Burials:
    """The dead deliveries of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self) -> Sequence[str]:
        """The burials that are to be carried out; deliveries that have none yet get one."""
        table = outgoing.c
        new = (
            select(table.id, func.length(table.payload).label("size"))
            .where(_DYING, table.burial.is_(None))
            .limit(PIECE)
            .with_for_update(skip_locked=True)
        )

        def work(connection: Connection) -> Sequence[str]:
            ids, size = [], 0
            for row in connection.execute(new):
                ids.append(row.id)
                size += row.size
                if size >= PIECE_BYTES:
                    break
            if ids:
                chosen = update(outgoing).where(table.id.in_(ids))
                connection.execute(chosen.values(burial=uuid.uuid4().hex))
            pending = select(table.burial).where(_DYING, table.burial.is_not(None)).distinct()
            return [str(burial) for burial in connection.execute(pending).scalars()]

        # Nobody who writes has to wait for this where there is nothing to do.
        any_dying = select(table.id).where(_DYING).limit(1)
        found = self._database.read(lambda connection: connection.execute(any_dying).first())
        return [] if found is None else self._database.write_aside(work)

    def letters(self, burial: str) -> list[dict[str, Any]]:
        """The letters of a burial, rows of `LETTER`."""
        chosen = select(outgoing).where(_DYING, outgoing.c.burial == burial).order_by(outgoing.c.id)

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

    def end(self, burial: str) -> None:
        """The letters of a burial are published: the catalog need not keep what is in them."""
        done = update(outgoing).where(_DYING, outgoing.c.burial == burial)
        values = {"state": "dead", "payload": b"", "ended": _now()}
        self._database.write_aside(lambda connection: connection.execute(done.values(values)))

    def resend(self, payloads: Iterable[tuple[str, bytes]]) -> Mapping[str, str]:
        """Send dead deliveries once more, ids with what is in their letters, and as often as the first time.

        Why some are not sent, by id.
        """
        why_not: dict[str, str] = {}
        for piece in _pieces(payloads):
            why_not |= self._database.write_aside(partial(_resend, piece))
        return why_not


def _resend(payloads: Mapping[str, bytes], connection: Connection) -> dict[str, str]:
    """Why some are not sent."""
    found = (
        select(outgoing.c.id, outgoing.c.webhook, outgoing.c.state, webhooks.c.state.label("webhook_state"))
        .outerjoin_from(
            outgoing,
            webhooks,
            (webhooks.c.tenant == outgoing.c.tenant) & (webhooks.c.name == outgoing.c.webhook),
        )
        .where(outgoing.c.id.in_(payloads))
    )
    why_not = dict.fromkeys(payloads, "the catalog does not know it")
    for row in connection.execute(found):
        target = target_of(row.webhook)
        if row.state != "dead":
            why_not[row.id] = "it has arrived" if row.state == "sent" else f"it is on its way to {target}"
        elif row.webhook_state != WebhookState.ACTIVE:
            gone = row.webhook_state is None
            why_not[row.id] = f"{target} is {'not there' if gone else 'disabled'}; mend that first"
        else:
            del why_not[row.id]
    values = {"state": "waiting", "due": _now(), "tries": 0}
    nothing = {"code": None, "reason": None, "burial": None, "ended": None}
    again = update(outgoing).where(outgoing.c.id == bindparam("which"))
    rising = [{"which": id, "what": raw} for id, raw in payloads.items() if id not in why_not]
    if rising:
        connection.execute(again.values(payload=bindparam("what"), **values, **nothing), rising)
    return why_not


def _pieces(payloads: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    """Some at a time: they are in memory then."""
    remaining = iter(payloads)
    while some := dict(islice(remaining, 1)):
        size = 0
        for id, raw in islice(remaining, PIECE - 1):
            some[id] = raw
            size += len(raw)
            if size >= PIECE_BYTES:
                break
        yield some


def _now() -> int:
    return time.time_ns() // 1000
