"""The clients of the demo: subscribers that listen, a feed that publishes, an admin."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import count, cycle
from typing import Self

from tamis.client import AsyncClient, Delivery
from tamis.demo.broker import Broker

TICK_S = 0.25
"""Seconds between two requests of the feed."""


@dataclass(frozen=True)
class Arrival:
    """A delivery that a subscriber has received."""

    subscriber: str
    delivery: Delivery
    seconds: float
    """Since its message was published."""


class Participants:
    """All clients, each with its own token."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._stack = AsyncExitStack()
        self._published: dict[str, float] = {}
        self.admin = AsyncClient(broker.url, broker.admin)
        self.feed = AsyncClient(broker.url, broker.feed)
        self.subscribers = {
            name: AsyncClient(broker.url, token) for name, token in broker.subscribers.items()
        }
        self.arrivals: list[Arrival] = []
        self._listening: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for client in (self.admin, self.feed, *self.subscribers.values()):
            await self._stack.enter_async_context(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def published(self) -> int:
        """The number of published messages."""
        return len(self._published)

    def listen(self) -> None:
        """Open an event stream for each subscriber."""
        for name in self.subscribers:
            listening = asyncio.create_task(self._listen(name))
            self._listening.append(listening)
            self._stack.push_async_callback(_ended, listening)

    def check(self) -> None:
        """Raise the error of a subscriber that stopped listening."""
        for listening in self._listening:
            if listening.done():
                listening.result()

    async def _listen(self, name: str) -> None:
        client = self.subscribers[name]
        async for delivery in client.events():
            seconds = time.monotonic() - self._published[delivery.message]
            self.arrivals.append(Arrival(name, delivery, seconds))
            await client.acknowledge([delivery.id])

    async def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Publish messages, each with its id."""
        for id, _ in messages:
            self._published[id] = time.monotonic()
        await self.feed.publish_many(messages)

    async def publish_until(
        self, enough: asyncio.Event, messages: Sequence[tuple[str, bytes]], at_a_time: int
    ) -> None:
        """Publish the same messages again and again, under new ids, until `enough` is set."""
        endless = _renamed(messages)
        while not enough.is_set():
            await self.publish([next(endless) for _ in range(at_a_time)])
            await asyncio.sleep(TICK_S)


def _renamed(messages: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    for number, (name, xml) in zip(count(1), cycle(messages), strict=False):
        yield f"{name} #{number}", xml


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
