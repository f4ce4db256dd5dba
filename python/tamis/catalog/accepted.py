"""Which messages the service has accepted; `tamis.service.publishing` tells how files go with it."""

import time
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select

from tamis.catalog import rows
from tamis.catalog.database import Database
from tamis.catalog.schema import accepted, entering

IDS = 5_000
"""So many are looked up by one statement."""

PIECE = 5_000
"""So many are forgotten in one transaction."""


class Accepted:
    """The accepted messages of a catalog, by source and id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, source: str, ids: Collection[str]) -> set[str]:
        """Which of some messages of a source are accepted already."""
        wanted = list(ids)

        def work(connection: Connection) -> set[str]:
            found: set[str] = set()
            for at in range(0, len(wanted), IDS):
                some = accepted.c.id.in_(wanted[at : at + IDS])
                found.update(
                    connection.execute(
                        select(accepted.c.id).where(accepted.c.source == source, some)
                    ).scalars()
                )
            return found

        return self._database.read(work)

    def accept(
        self, messages: Iterable[tuple[str, str]], files: Collection[str], entered: Collection[str]
    ) -> None:
        """Accept messages (source, id), none of them known, that are in files which are about to enter.

        `entered` are files of earlier calls that have entered meanwhile.
        """
        now = time.time_ns() // 1000
        new = [{"source": source, "id": id, "received": now} for source, id in messages]

        def work(connection: Connection) -> None:
            there = select(entering.c.file).where(entering.c.file.in_(files)).limit(1)
            # So it is if the connection was lost while this was committed.
            if connection.execute(there).first() is None:
                connection.execute(insert(accepted), new)
                connection.execute(insert(entering), [{"file": file} for file in files])
                if entered:
                    connection.execute(delete(entering).where(entering.c.file.in_(entered)))

        self._database.write_aside(work)

    def forget(self, before: datetime) -> int:
        """Let ids of messages be new again that were accepted before a time; how many."""
        old = select(accepted.c.source, accepted.c.id).where(
            accepted.c.received < rows.microseconds_of(before)
        )
        count = 0
        # Found by reading alone, which holds nobody up, and removed in pieces, so that publishers get by.
        while some := self._database.read(partial(_fetch, old.limit(PIECE))):
            self._database.write_aside(partial(_remove, some))
            count += len(some)
        return count

    def entering(self) -> set[str]:
        """Files that count, and may have to be let in."""
        return self._database.read(
            lambda connection: set(connection.execute(select(entering.c.file)).scalars())
        )


def _fetch(wanted: Select[Any], connection: Connection) -> list[dict[str, str]]:
    return [{"of_source": row.source, "of_id": row.id} for row in connection.execute(wanted)]


def _remove(some: Sequence[dict[str, str]], connection: Connection) -> None:
    one = delete(accepted).where(
        accepted.c.source == bindparam("of_source"), accepted.c.id == bindparam("of_id")
    )
    connection.execute(one, some)
