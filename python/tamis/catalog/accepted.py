"""The ids of messages that the service has accepted, to de-duplicate by.

`tamis.service.inbox_writer` describes the two-phase protocol with the files of the inbox.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select

from tamis.catalog import rows
from tamis.catalog.database import Database
from tamis.catalog.schema import accepted, entering

DELETED = 5_000
"""Rows deleted in one transaction."""


class Accepted:
    """The accepted messages of a catalog, by source and id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, source: str, ids: Collection[str]) -> set[str]:
        """The ids among `ids` that were accepted before."""

        def work(connection: Connection) -> set[str]:
            found: set[str] = set()
            for chunk in rows.chunks(ids):
                some = accepted.c.id.in_(chunk)
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
        """Accept new messages (source, id). Their `files` are about to be moved into the inbox.

        `entered` are files of earlier calls that are in the inbox by now.
        """
        now = time.time_ns() // 1000
        new = [{"source": source, "id": id, "received": now} for source, id in messages]

        def work(connection: Connection) -> None:
            present = select(entering.c.file).where(entering.c.file.in_(files)).limit(1)
            # Present if the connection was lost during the commit: then this is a retry.
            if connection.execute(present).first() is None:
                connection.execute(insert(accepted), new)
                connection.execute(insert(entering), [{"file": file} for file in files])
                if entered:
                    connection.execute(delete(entering).where(entering.c.file.in_(entered)))

        self._database.write_unversioned(work)

    def forget(self, before: datetime) -> int:
        """Delete the ids of messages accepted before a time; returns how many."""
        old = select(accepted.c.source, accepted.c.id).where(
            accepted.c.received < rows.microseconds_of(before)
        )
        count = 0
        # Reads take no lock; deletes come in chunks, so that publishers do not wait for long.
        while some := self._database.read(partial(_fetch, old.limit(DELETED))):
            self._database.write_unversioned(partial(_remove, some))
            count += len(some)
        return count

    def entering(self) -> set[str]:
        """Files with accepted messages that may not be in the inbox yet."""
        return self._database.read(
            lambda connection: set(connection.execute(select(entering.c.file)).scalars())
        )


def _fetch(chosen: Select[Any], connection: Connection) -> list[dict[str, str]]:
    return [{"of_source": row.source, "of_id": row.id} for row in connection.execute(chosen)]


def _remove(some: Sequence[dict[str, str]], connection: Connection) -> None:
    one = delete(accepted).where(
        accepted.c.source == bindparam("of_source"), accepted.c.id == bindparam("of_id")
    )
    connection.execute(one, some)
