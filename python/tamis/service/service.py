"""The running service, shared by all operations: settings, catalog, background tasks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from tamis.catalog import Catalog
from tamis.service.background.cleanup import Cleanup
from tamis.service.background.lag import read_until
from tamis.service.background.notifier import Notifier
from tamis.service.background.outbox_follower import OutboxFollower
from tamis.service.background.supervisor import Supervisor
from tamis.service.data_uploads import DataUploads
from tamis.service.inbox_writer import InboxWriter
from tamis.service.metrics import ServiceMetrics
from tamis.service.newest import Newest
from tamis.service.threads import ThreadPool, TokenLimit
from tamis.service.webhooks.dead_letters import DeadLetterWriter
from tamis.service.webhooks.sender import Sender
from tamis.settings import Settings

log = logging.getLogger(__name__)

CATALOG_BUSY_SECONDS = 5.0
"""How long a request waits for other writers of an SQLite catalog before it gets 503."""

MATCH_THREADS, MATCH_QUEUE = 2, 64
"""The pool for trying messages. It is small: this work is limited by the processor."""

MATCH_REQUESTS = 8
"""Requests of one token that may try messages at the same time, one running and the others waiting.

A browser opens six connections at most, so the page stays below it.
"""

PUBLISH_THREADS, PUBLISH_QUEUE = 32, 64
"""The pool for publishing. Publishers that wait at the same time share a transaction and a sync."""

AUTHENTICATION_THREADS, AUTHENTICATION_QUEUE = 4, 1_000
"""The pool for looking up tokens."""

RESTART_SECONDS = 5.0
"""Seconds before a background task that failed is restarted."""


class Service:
    """A running service."""

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        supervisor: Supervisor | None = None,
        refresher: Supervisor | None = None,
    ) -> None:
        """`supervisor` runs the job; None where the job runs elsewhere. `refresher` refreshes local data."""
        self._refresher = refresher
        self.settings = settings
        self.catalog = catalog
        self.brokers = settings.brokers()
        self.inboxes = InboxWriter(
            catalog.accepted,
            settings.sources,
            settings.serve.backlog,
            lambda source: read_until(settings.state, source),
        )
        self.newest = Newest(settings)
        self.data = DataUploads(settings, catalog)
        self.supervisor = supervisor
        self.notifier = Notifier()
        self.sender = Sender(catalog.outgoing, settings.webhooks, self.notifier)
        self.dead_letters = DeadLetterWriter(catalog.dead_deliveries, settings.dead_letters)
        self.metrics = ServiceMetrics(settings, self.inboxes, supervisor, self.sender, self.dead_letters)
        self.outbox_follower = OutboxFollower.of(settings, catalog.mailbox)
        self._cleanup = Cleanup(catalog, self.outbox_follower, settings.serve.keep)
        self.authentication = ThreadPool("authentication", AUTHENTICATION_THREADS, AUTHENTICATION_QUEUE)
        self.publishing = ThreadPool("publishing", PUBLISH_THREADS, PUBLISH_QUEUE)
        self.matching = ThreadPool("matching", MATCH_THREADS, MATCH_QUEUE)
        self.match_limit = TokenLimit(MATCH_REQUESTS)
        self.stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the background tasks during the block."""
        await run_in_threadpool(self.inboxes.recover)
        await run_in_threadpool(self.data.remove_leftovers)
        for process in self._processes():
            process.start()
        sending = asyncio.create_task(_restart_on_failure(self.sender.run))
        others = [
            asyncio.create_task(_restart_on_failure(one.run)) for one in (self.dead_letters, self._cleanup)
        ]
        if self.outbox_follower is not None:
            others.append(
                asyncio.create_task(_restart_on_failure(partial(self.outbox_follower.run, self.notifier)))
            )
        try:
            yield
        finally:
            for process in self._processes():
                await run_in_threadpool(process.stop)
            self.sender.stop()
            for task in others:
                task.cancel()
            await asyncio.gather(sending, *others, return_exceptions=True)
            for pool in (self.authentication, self.publishing, self.matching):
                pool.close()

    def _processes(self) -> list[Supervisor]:
        return [one for one in (self.supervisor, self._refresher) if one is not None]

    def stop(self) -> None:
        """End event streams. To be called on the event loop."""
        self.stopping = True
        self.notifier.notify_all()


async def _restart_on_failure(run: Callable[[], Awaitable[None]]) -> None:
    """Run a background task; restart it after an unexpected error."""
    while True:
        try:
            return await run()
        except Exception:
            log.critical(
                "a background task failed; it is restarted in %.0f s", RESTART_SECONDS, exc_info=True
            )
            await asyncio.sleep(RESTART_SECONDS)


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


CurrentService = Annotated[Service, Depends(_service)]
