"""Sends the deliveries that are due to their webhooks, and records each attempt.

The queue is in the catalog: deliveries, their due times, their attempts. The sender claims due deliveries by
a lease. It records an attempt after the response: after a crash in between, the next sender repeats the
delivery under the same id. One webhook gets only a share of the concurrent requests, and one request at a
time while it fails, so that a receiver that hangs does not delay others.
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
from tamis.model.signatures import sign
from tamis.model.webhook import Webhook
from tamis.service.background.notifier import WEBHOOKS, Notifier
from tamis.service.background.polling import poll
from tamis.service.threads import in_thread
from tamis.service.webhooks import cloudevents
from tamis.service.webhooks.retry import outcome_of
from tamis.settings import WebhookSettings
from tamis.sinks.addresses import Addresses
from tamis.sinks.webhook import Answer, Poster

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""The longest wait between two rounds; a notification ends it early."""

WEBHOOK_SHARE = 4
"""One webhook gets at most this fraction, a fourth, of the concurrent requests."""

MAX_PAYLOAD_BYTES = 64 << 20
"""Payloads of running requests, in total: above it no request starts."""

LEASE = 30.0
"""Seconds of a lease beyond the timeout of a request."""

GRACE = 5.0
"""Seconds that running requests get to finish when the service stops."""

CONCURRENT_TESTS = 4
"""Test requests at a time, beside the deliveries."""


@dataclass(slots=True)
class Counts:
    """Counts since the start of the sender."""

    sent: int = 0
    failed: int = 0
    """Failed attempts, not deliveries."""


class Sender:
    """Sends the queue of webhook deliveries."""

    def __init__(self, outgoing: Outgoing, settings: WebhookSettings, notifier: Notifier) -> None:
        """`notifier` wakes the sender when there may be something to send."""
        self.addresses = Addresses(settings.allow)
        self.counts = Counts()
        self._outgoing = outgoing
        self._settings = settings
        self._notifier = notifier
        self._stopped = asyncio.Event()
        self._poster: Poster | None = None
        self._tests = asyncio.Semaphore(CONCURRENT_TESTS)
        self._running: dict[asyncio.Task[None], Outbound] = {}
        self._each: Counter[Key] = Counter()
        """Running requests by webhook."""
        self._bytes = 0
        self._unrecorded: list[Attempt] = []
        """Attempts that are not yet recorded."""

    async def run(self) -> None:
        """Send until `stop`; running requests get some time to finish."""
        settings = self._settings
        self._poster = Poster(self.addresses, settings.timeout, settings.concurrency + CONCURRENT_TESTS)
        try:
            await poll(
                self._send_due, interval=0, failing="nothing is sent to webhooks", stopped=self._stopped
            )
        finally:
            await self._finish()
            await self._poster.close()

    def stop(self) -> None:
        """Start no more requests. To be called on the event loop."""
        self._stopped.set()
        self._notifier.notify([WEBHOOKS])

    def waiting(self) -> int:
        """Length of the queue."""
        return self._outgoing.count()

    async def test(self, webhook: Webhook) -> Answer:
        """Send a test event, without retries."""
        id = f"test-{uuid.uuid4().hex}"
        async with self._tests:
            return await self._post(webhook, id, cloudevents.test_event(id, webhook.name))

    async def _send_due(self) -> None:
        """One round; ends when the next delivery is due, or at a notification."""
        event = self._notifier.event_for(WEBHOOKS)
        pause = await self._round()
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), pause)

    async def _round(self) -> float:
        """Record finished attempts and start due requests; seconds until the next round."""
        await self._record()
        now = datetime.now(UTC)
        waiting = await in_thread(self._outgoing.waiting)
        pause = POLL_SECONDS
        for webhook, due in sorted(waiting, key=lambda one: one[1]):
            begin = due if webhook.held_until is None else max(due, webhook.held_until)
            if begin > now:
                pause = min(pause, (begin - now).total_seconds())
                continue
            key = webhook.tenant, webhook.name
            if any(one.delivery.key == key for one in self._unrecorded):
                # Its response may have disabled the webhook or asked for a delay: record that first.
                continue
            slots = self._free_slots(webhook)
            if slots > 0:
                until = now + timedelta(seconds=self._settings.timeout + LEASE)
                for one in await in_thread(self._outgoing.claim, key, now, until, slots):
                    self._start(webhook, one)
        return pause

    def _free_slots(self, webhook: Webhook) -> int:
        """How many requests may start for a webhook: one at a time while it fails."""
        if self._bytes >= MAX_PAYLOAD_BYTES:
            return 0
        whole = self._settings.concurrency
        share = 1 if webhook.failing else max(1, whole // WEBHOOK_SHARE)
        return min(whole - len(self._running), share - self._each[webhook.tenant, webhook.name])

    def _start(self, webhook: Webhook, delivery: Outbound) -> None:
        task = asyncio.create_task(self._send(webhook, delivery))
        self._running[task] = delivery
        self._each[delivery.key] += 1
        self._bytes += len(delivery.payload)

        def done(task: asyncio.Task[None]) -> None:
            del self._running[task]
            self._each -= Counter([delivery.key])
            self._bytes -= len(delivery.payload)
            self._notifier.notify([WEBHOOKS])

        task.add_done_callback(done)

    async def _send(self, webhook: Webhook, delivery: Outbound) -> None:
        try:
            body = await in_thread(cloudevents.delivery_event, delivery)
            answer = await self._post(webhook, delivery.id, body)
        except Exception:
            # Also a delivery that cannot be encoded needs a result.
            log.exception("delivery %s cannot be sent", delivery.id)
            answer = Answer(None, "it cannot be sent; see the log of the service")
        one = outcome_of(delivery, answer, self._settings.schedule, datetime.now(UTC))
        self._unrecorded.append(one)
        if one.failure is None:
            self.counts.sent += 1
        else:
            self.counts.failed += 1

    async def _post(self, webhook: Webhook, id: str, body: bytes) -> Answer:
        assert self._poster is not None
        now = datetime.now(UTC)
        signatures = await in_thread(sign, webhook.secrets(now), id, int(now.timestamp()), body)
        headers = {
            "Content-Type": cloudevents.CONTENT_TYPE,
            "User-Agent": f"tamis/{tamis.__version__}",
            **signatures,
        }
        return await self._poster.post(webhook.url, headers, body)

    async def _record(self) -> None:
        tries = list(self._unrecorded)
        if tries:
            await in_thread(self._outgoing.record, tries)
            # Not before: an attempt that is not recorded would be sent again.
            del self._unrecorded[: len(tries)]

    async def _finish(self) -> None:
        """Wait a little for running requests; release the others, to be sent by the next process."""
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE)
        left = dict(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        try:
            await self._record()
            if left:
                await in_thread(self._outgoing.release, [one.id for one in left.values()])
        except TamisError as error:
            log.error("the last attempts are not recorded; they may be sent again: %s", error)
