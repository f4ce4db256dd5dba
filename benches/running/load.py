"""Publishers and subscribers of a service, and the books that are kept against it."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tamis
from benches.running.job import PATIENCE_S, JobBenchError
from benches.running.service import ServiceFolder
from tamis.bench.measure import array
from tamis.client import AsyncClient, ClientError, Delivery

TICK_S = 0.05
"""Messages that are due within so many seconds are published together."""

PUBLISHERS = 8
"""So many requests at most are on their way at a time."""

ACKNOWLEDGED_S = 1.0
"""Subscribers say so often what they have."""

BUSY = ("backlog", "rate-limit")
"""What a service says that is asked for too much."""

Key = tuple[str, str]
"""A message and a subscription."""

Show = Callable[[int, int], None]


@dataclass
class Stretch:
    """What was published in one go, at one rate."""

    rate: float
    seconds: float
    messages: int = 0
    refused: int = 0
    """Messages that the service would not take, however often it was asked."""
    late_s: float = 0.0
    """How much later than due the last message was accepted."""
    accepted: list[float] = field(default_factory=list)
    """Seconds until each request was answered."""
    waits: list[tuple[float, float]] = field(default_factory=list)
    """When a message was due, and the seconds from then until a subscriber had it."""

    def percentile(self, percent: float) -> float:
        return float(np.percentile([wait for _, wait in self.waits] or [0.0], percent))

    @property
    def is_held(self) -> bool:
        """Whether messages went in as they came, and those at the end waited no longer than those before."""
        if not self.waits:
            return False
        first, last = min(self.waits)[0], max(self.waits)[0]
        third = (last - first) / 3
        middle = [wait for due, wait in self.waits if first + third <= due < last - third]
        ending = [wait for due, wait in self.waits if due >= last - third]
        wait = float(np.median(ending))
        grows = wait - float(np.median(middle or ending)) > SLACK_S + GROWTH * third
        # Where messages wait for half of the time that was watched, it was not watched for long enough.
        settled = wait <= self.seconds / 2
        return settled and not grows and not self.refused and self.late_s < LATE_S


GROWTH, SLACK_S = 0.02, 0.3
"""Lag grows if the last third waited longer than the middle one: by so much for a second, and that much more.

Batches are not all alike, so that waits differ a little.
"""

LATE_S = 2.0
"""Publishers that are so much too late are held up."""


class Load:
    """Who publishes and receives, on one event loop. Every delivery is expected before it can come."""

    def __init__(self, folder: ServiceFolder, index: tamis.Index, messages: Iterator[bytes]) -> None:
        """The index has the queries by their lines; it says what must arrive."""
        self._folder = folder
        self._index = index
        self._messages = messages
        self._numbers = iter(range(1 << 62))
        self._room = asyncio.Semaphore(PUBLISHERS)
        self._stack = AsyncExitStack()
        self._publisher = AsyncClient(folder.url, folder.publisher)
        self._subscribers: list[AsyncClient] = []
        self._cursors: list[int] = []
        self._stretches: dict[Key, tuple[float, Stretch]] = {}
        """What is still to come."""
        self._kept: dict[Key, str] | None = None
        """The delivery ids of what has come and was not acknowledged, where that is wanted."""
        self.strange = 0
        """Deliveries that nobody expected, or not once more."""
        self.last = 0.0
        """When something arrived last."""

    async def __aenter__(self) -> "Load":
        await self._stack.enter_async_context(self._publisher)
        tasks = []
        for at, (_, token) in enumerate(self._folder.subscribers):
            client = await self._stack.enter_async_context(AsyncClient(self._folder.url, token))
            self._subscribers.append(client)
            self._cursors.append(0)
            tasks += [asyncio.create_task(self._receive(at)), asyncio.create_task(self._acknowledge(at))]
        self._stack.push_async_callback(_cancelled, tasks)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def missing(self) -> int:
        """Deliveries that are still to come."""
        return len(self._stretches)

    async def publish(self, rate: float, seconds: float, show: Show) -> Stretch:
        """Publish at a rate for some time, then wait until all of it has arrived."""
        stretch = Stretch(rate, seconds)
        start = time.monotonic()
        ticks = max(1, round(seconds / TICK_S))
        async with asyncio.TaskGroup() as requests:
            for tick in range(ticks):
                due = start + tick * TICK_S
                await asyncio.sleep(due - time.monotonic())
                count = round(rate * (tick + 1) * TICK_S) - round(rate * tick * TICK_S)
                await self._room.acquire()
                if count:
                    requests.create_task(self._publish(count, due, stretch))
                else:
                    self._room.release()
                show(tick, ticks)
        stretch.late_s = time.monotonic() - start - seconds
        await self._drained()
        return stretch

    async def _publish(self, count: int, due: float, stretch: Stretch) -> None:
        try:
            messages = [next(self._messages) for _ in range(count)]
            ids = [f"m{next(self._numbers)}" for _ in range(count)]
            self._expect(ids, messages, due, stretch)
            stretch.messages += count
            sent = time.monotonic()
            texts = (message.decode() for message in messages)
            try:
                await self._publisher.publish_many(zip(ids, texts, strict=True))
            except ClientError as error:
                if error.code not in BUSY:
                    raise
                self._expect_no_more(ids)
                stretch.refused += count
            else:
                stretch.accepted.append(time.monotonic() - sent)
        finally:
            self._room.release()

    def _expect(self, ids: Iterable[str], messages: Sequence[bytes], due: float, stretch: Stretch) -> None:
        matched: Any = self._index.targets(self._index.match_batch(array(messages)))
        for id, lines in zip(ids, matched.to_pylist(), strict=True):
            for line in lines:
                self._stretches[id, f"s{line}"] = due, stretch

    def _expect_no_more(self, ids: Iterable[str]) -> None:
        refused = set(ids)
        for key in [key for key in self._stretches if key[0] in refused]:
            del self._stretches[key]

    async def _drained(self) -> None:
        """Until all has arrived; or until nothing comes any more."""
        self.last = max(self.last, time.monotonic())
        while self.missing and time.monotonic() < self.last + PATIENCE_S / 2:
            await asyncio.sleep(0.05)
        if self.missing:
            reason = f"{self.missing} deliveries never came, such as {next(iter(self._stretches))}"
            raise JobBenchError("lost", reason)

    async def _receive(self, at: int) -> None:
        async for delivery in self._subscribers[at].events():
            self._take(delivery)
            self._cursors[at] = delivery.cursor

    def _take(self, delivery: Delivery) -> None:
        self.last = time.monotonic()
        key = (delivery.message, delivery.subscription)
        expected = self._stretches.pop(key, None)
        if expected is None:
            self.strange += 1
            return
        due, stretch = expected
        stretch.waits.append((due, self.last - due))
        if self._kept is not None:
            self._kept[key] = delivery.id

    def keep(self) -> None:
        """Acknowledge nothing from now on, so that it can be had again."""
        self._kept = {}

    async def receive_again(self) -> tuple[int, int]:
        """What was kept, once more, by polling: how many, and how many of them are not the same."""
        kept = dict(self._kept or {})
        again: dict[Key, str] = {}
        for client in self._subscribers:
            after = 0
            while page := await client.deliveries(after=after, limit=1000):
                again |= {(one.message, one.subscription): one.id for one in page}
                after = page[-1].cursor
        same = kept.items() & again.items()
        # Those that came just before, and were not acknowledged any more, are there too.
        return len(again), len(kept) - len(same)

    async def _acknowledge(self, at: int) -> None:
        done = 0
        while True:
            await asyncio.sleep(ACKNOWLEDGED_S)
            if self._kept is None and self._cursors[at] > done:
                done = self._cursors[at]
                await self._subscribers[at].acknowledge(until=done)


async def _cancelled(tasks: Iterable["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
