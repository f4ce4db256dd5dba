"""Blocking work in threads: a pool for each kind of work, so that one kind does not delay the others.

The operations of FastAPI that are not `async` share one pool. What may take long has its own pool: trying
messages, which costs processor time, and publishing, which waits for the disk and the catalog. So has
authentication, which every request needs.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

from tamis.service.errors import ServiceError

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run work in a thread. A task that is cancelled meanwhile first waits for the thread.

    A thread cannot be cancelled; it would continue to use connections that are closed.
    """
    working = asyncio.ensure_future(run_in_threadpool(work, *arguments, **named))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


class ThreadPool:
    """Threads for one kind of work, with a bounded queue. Its methods are for the event loop only."""

    def __init__(self, name: str, threads: int, queue: int) -> None:
        """`queue`: requests that may wait for a thread; more get 503."""
        self._name = name
        self._limit = threads + queue
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._requests = 0
        """Running or waiting."""

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run work in a thread of the pool."""
        if self._requests >= self._limit:
            reason = f"{self._name}: {self._requests} requests are running or waiting; try again later"
            raise ServiceError("busy", reason, value=self._requests, limit=self._limit)
        self._requests += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, partial(work, *arguments, **named))
        finally:
            self._requests -= 1

    def close(self) -> None:
        """Stop: work that has not started is refused."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class TokenLimit:
    """Limits each token to one running request, and a few that wait for it."""

    def __init__(self, requests: int) -> None:
        """`requests`: running and waiting, for each token; more get 429."""
        self._limit = requests
        self._requests: Counter[str] = Counter()
        self._running: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, token: str) -> AsyncIterator[None]:
        """Wait until no other request of the token runs."""
        if self._requests[token] >= self._limit:
            reason = f"{self._limit} such requests at a time are allowed with this token"
            raise ServiceError(
                "concurrency-limit", reason, value=self._requests[token], limit=self._limit, retry_after=1
            )
        self._requests[token] += 1
        try:
            async with self._running.setdefault(token, asyncio.Lock()):
                yield
        finally:
            self._requests[token] -= 1
            if not self._requests[token]:
                del self._requests[token], self._running[token]
