"""Deletes what is older than `keep` days: accepted ids, finished deliveries, batches of the outbox."""

import logging
from datetime import UTC, datetime, timedelta

from tamis.catalog import Catalog
from tamis.service.background.outbox_follower import OutboxFollower
from tamis.service.background.polling import poll
from tamis.service.threads import in_thread

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 3600.0


class Cleanup:
    """The retention of a service."""

    def __init__(self, catalog: Catalog, outbox_follower: OutboxFollower | None, keep: float) -> None:
        """`keep`: the retention in days."""
        self._catalog = catalog
        self._outbox_follower = outbox_follower
        self._keep = timedelta(days=keep)

    def delete_expired(self) -> None:
        """Delete what is older than the retention."""
        before = datetime.now(UTC) - self._keep
        ids = self._catalog.accepted.forget(before)
        deliveries = self._catalog.mailbox.forget(before) + self._catalog.outgoing.forget(before)
        batches = 0 if self._outbox_follower is None else self._outbox_follower.delete_older(before)
        if ids or deliveries or batches:
            log.info(
                "deleted %d message ids, %d finished deliveries, %d batches of the outbox",
                ids,
                deliveries,
                batches,
            )

    async def run(self) -> None:
        """Clean up every hour, without end."""
        await poll(
            lambda: in_thread(self.delete_expired), interval=INTERVAL_SECONDS, failing="the cleanup fails"
        )
