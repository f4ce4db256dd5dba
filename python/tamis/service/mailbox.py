"""The outbox → mailboxes: each publication once, and those who wait are told."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool

from tamis.catalog.mailbox import Mailbox
from tamis.connectors.outbox import Outbox
from tamis.errors import TamisError
from tamis.settings import Settings

log = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds between two looks at the outbox."""

PAUSE = 5.0
"""Seconds before the next try, when something fails."""

KEPT = timedelta(days=7)
"""So long are acknowledged deliveries remembered, so that none comes twice."""

SWEEP = 3600.0
"""Seconds between two looks at what can be forgotten."""


class Bell:
    """Rings when there may be something new; only to be used on the event loop."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def ticket(self) -> asyncio.Event:
        """The next ringing: take it before looking, then nothing is missed."""
        return self._next

    def ring(self) -> None:
        ringing, self._next = self._next, asyncio.Event()
        ringing.set()


class Tail:
    """Follows an outbox."""

    def __init__(self, outbox: Outbox, mailbox: Mailbox, elsewhere: frozenset[str]) -> None:
        """`elsewhere`: delivery targets that have a sink of their own, and wait in no mailbox."""
        self._outbox = outbox
        self._mailbox = mailbox
        self._elsewhere = elsewhere
        self._seen = mailbox.tailed()
        self.failure: TamisError | None = None
        """Why mailboxes are not up to date."""

    @classmethod
    def of(cls, settings: Settings, mailbox: Mailbox) -> "Tail | None":
        """That of the outbox which has all deliveries as rows; none if there is no such outbox."""
        sink = settings.whole_outbox
        if sink is None:
            return None
        elsewhere = frozenset(target for sink in settings.sinks for target in sink.targets or ())
        return cls(Outbox(sink.path, sink.form), mailbox, elsewhere)

    def follow(self) -> int:
        """Take what is new; how many publications that were."""
        new = [name for name in self._outbox.manifests() if name not in self._seen]
        for name in new:
            publication = self._outbox.named(name)
            if publication is None:
                continue
            if publication.form == "xml":
                log.warning("%s was published as XML: its deliveries are in the outbox only", name)
            else:
                rows = (row for batch in self._outbox.read(publication) for row in batch.to_pylist())
                wanted = (row for row in rows if row["delivery_target"] not in self._elsewhere)
                self._mailbox.take(name, wanted)
            self._seen.add(name)
        return len(new)

    async def run(self, bell: Bell) -> None:
        """Follow for ever."""
        swept = -SWEEP
        while True:
            try:
                if await run_in_threadpool(self.follow):
                    bell.ring()
                now = asyncio.get_running_loop().time()
                if now - swept >= SWEEP:
                    await run_in_threadpool(self._mailbox.forget, datetime.now(UTC) - KEPT)
                    swept = now
                self.failure = None
            except TamisError as error:
                if self.failure is None:
                    log.error("mailboxes are not up to date: %s", error)
                self.failure = error
            await asyncio.sleep(PAUSE if self.failure else LOOK)
