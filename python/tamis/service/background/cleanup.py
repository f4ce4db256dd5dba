"""What nobody needs any more is let go of: accepted ids, finished deliveries, old publications."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from tamis.catalog import Catalog
from tamis.errors import TamisError
from tamis.service.background.outbox_follower import OutboxFollower
from tamis.service.threads import in_thread

log = logging.getLogger(__name__)

PAUSE = 3600.0
"""Seconds between two looks."""


class Cleanup:
    """Keeps a service from growing for ever."""

    def __init__(self, catalog: Catalog, outbox_follower: OutboxFollower | None, keep: float) -> None:
        """`keep`: days for which things are remembered."""
        self._catalog = catalog
        self._outbox_follower = outbox_follower
        self._keep = timedelta(days=keep)

    def delete_expired(self) -> None:
        """Forget what is old enough."""
        before = datetime.now(UTC) - self._keep
        ids = self._catalog.accepted.forget(before)
        deliveries = self._catalog.mailbox.forget(before) + self._catalog.outgoing.forget(before)
        publications = 0 if self._outbox_follower is None else self._outbox_follower.delete_older(before)
        if ids or deliveries or publications:
            told = "forgot %d ids of messages, %d deliveries that were made, %d publications of the outbox"
            log.info(told, ids, deliveries, publications)

    async def run(self) -> None:
        """Look now and then, for ever."""
        while True:
            try:
                await in_thread(self.delete_expired)
            except TamisError as error:
                log.error("nothing old is forgotten: %s", error)
            await asyncio.sleep(PAUSE)
