"""Deliveries → webhooks: what is due is sent, and what came of it noted.

All that must not be lost is in the catalog: what waits, when it is tried next, how often it was. A try is
noted when its answer is there; who is killed before sends the same again, under the same id.
"""

import asyncio
import logging
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import tamis
from tamis.catalog.outgoing import Attempt, Outbound, Outgoing
from tamis.catalog.webhooks import Key
from tamis.errors import TamisError
from tamis.model.signatures import signed
from tamis.model.webhook import Webhook
from tamis.service.background.outbox_follower import OUTGOING, Notifier
from tamis.service.threads import in_thread
from tamis.service.webhooks import cloudevents
from tamis.service.webhooks.retry import outcome_of
from tamis.settings import WebhookSettings
from tamis.sinks.addresses import Addresses
from tamis.sinks.webhook import Answer, Poster

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks at what is due, where nobody rings before."""

PAUSE = 5.0
"""Seconds before the next look, when the catalog fails."""

SHARE = 4
"""One webhook gets a part of the requests at a time: the whole of them, divided by this."""

IN_MEMORY = 64 << 20
"""Bytes of payloads; when there are more, nothing else is begun."""

LEASE = 30.0
"""Seconds that a delivery is claimed for beyond what a request may take."""

GRACE = 5.0
"""Seconds that running requests get when the service stops."""

TESTS = 4
"""So many tests at a time, beside the deliveries."""


@dataclass(slots=True)
class Tally:
    """What the sender has done since it started."""

    sent: int = 0
    failed: int = 0
    """Tries, not deliveries."""


class Sender:
    """Sends what waits for webhooks, for as long as it runs."""

    def __init__(self, outgoing: Outgoing, settings: WebhookSettings, notifier: Notifier) -> None:
        """`notifier` rings when there may be something to send."""
        self.addresses = Addresses(settings.allow)
        self.tally = Tally()
        self._outgoing = outgoing
        self._settings = settings
        self._notifier = notifier
        self._stopping = False
        self._poster: Poster | None = None
        self._tests = asyncio.Semaphore(TESTS)
        self._running: dict[asyncio.Task[None], Outbound] = {}
        self._each: Counter[Key] = Counter()
        """How many requests run for each webhook."""
        self._bytes = 0
        self._tries: list[Attempt] = []
        """What is to be noted."""

    async def run(self) -> None:
        """Send, until it is stopped; what runs then may finish."""
        settings = self._settings
        self._poster = Poster(self.addresses, settings.timeout, settings.concurrency + TESTS)
        failing = False
        try:
            while not self._stopping:
                ticket = self._notifier.event_for(OUTGOING)
                try:
                    pause = await self._round()
                    failing = False
                except TamisError as error:
                    if not failing:
                        log.error("webhooks are not sent to: %s", error)
                    failing, pause = True, PAUSE
                with suppress(TimeoutError):
                    await asyncio.wait_for(ticket.wait(), pause)
        finally:
            await self._finish()
            await self._poster.close()

    def stop(self) -> None:
        """Begin nothing more; to be called on the event loop."""
        self._stopping = True
        self._notifier.notify([OUTGOING])

    def waiting(self) -> int:
        """How many deliveries wait to be sent."""
        return self._outgoing.count()

    async def test(self, webhook: Webhook) -> Answer:
        """Send a test event, once and at once."""
        id = f"test-{uuid.uuid4().hex}"
        async with self._tests:
            return await self._post(webhook, id, cloudevents.test_event(id, webhook.name))

    async def _round(self) -> float:
        """Note what is done, begin what is due; seconds until there may be more to do."""
        await self._note()
        now = datetime.now(UTC)
        waiting = await in_thread(self._outgoing.waiting)
        pause = LOOK
        for webhook, due in sorted(waiting, key=lambda one: one[1]):
            begin = due if webhook.held_until is None else max(due, webhook.held_until)
            if begin > now:
                pause = min(pause, (begin - now).total_seconds())
                continue
            key = webhook.tenant, webhook.name
            if any(one.delivery.key == key for one in self._tries):
                # It may have said that it wants no more, or not now: that is noted first.
                continue
            room = self._room(webhook)
            if room > 0:
                until = now + timedelta(seconds=self._settings.timeout + LEASE)
                for one in await in_thread(self._outgoing.claim, key, now, until, room):
                    self._begin(webhook, one)
        return pause

    def _room(self, webhook: Webhook) -> int:
        """How many requests may begin for a webhook.

        One that fails gets one at a time: however many hang, there is room for those that do not.
        """
        if self._bytes >= IN_MEMORY:
            return 0
        whole = self._settings.concurrency
        share = 1 if webhook.failing else max(1, whole // SHARE)
        return min(whole - len(self._running), share - self._each[webhook.tenant, webhook.name])

    def _begin(self, webhook: Webhook, delivery: Outbound) -> None:
        task = asyncio.create_task(self._send(webhook, delivery))
        self._running[task] = delivery
        self._each[delivery.key] += 1
        self._bytes += len(delivery.payload)

        def done(task: asyncio.Task[None]) -> None:
            del self._running[task]
            self._each -= Counter([delivery.key])
            self._bytes -= len(delivery.payload)
            self._notifier.notify([OUTGOING])

        task.add_done_callback(done)

    async def _send(self, webhook: Webhook, delivery: Outbound) -> None:
        try:
            body = await in_thread(cloudevents.delivery_event, delivery)
            answer = await self._post(webhook, delivery.id, body)
        except Exception:
            # One that cannot be sent at all must end, too.
            log.exception("the delivery %s cannot be sent", delivery.id)
            answer = Answer(None, "it cannot be sent; the log of the service says why")
        one = outcome_of(delivery, answer, self._settings.schedule, datetime.now(UTC))
        self._tries.append(one)
        if one.failure is None:
            self.tally.sent += 1
        else:
            self.tally.failed += 1

    async def _post(self, webhook: Webhook, id: str, body: bytes) -> Answer:
        assert self._poster is not None
        now = datetime.now(UTC)
        signatures = await in_thread(signed, webhook.secrets(now), id, int(now.timestamp()), body)
        headers = {
            "Content-Type": cloudevents.CONTENT_TYPE,
            "User-Agent": f"tamis/{tamis.__version__}",
            **signatures,
        }
        return await self._poster.post(webhook.url, headers, body)

    async def _note(self) -> None:
        tries = list(self._tries)
        if tries:
            await in_thread(self._outgoing.record, tries)
            # Not before: what is not noted would be sent again.
            del self._tries[: len(tries)]

    async def _finish(self) -> None:
        """Let running requests finish, for a while; the others are begun anew by who comes next."""
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE)
        left = dict(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        try:
            await self._note()
            if left:
                await in_thread(self._outgoing.release, [one.id for one in left.values()])
        except TamisError as error:
            log.error("what was just sent to webhooks may be sent again: %s", error)
