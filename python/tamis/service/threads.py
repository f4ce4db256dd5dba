"""Blocking work of background tasks, in threads."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run work in a thread. A task that is cancelled meanwhile first waits for the thread.

    A thread cannot be cancelled, and would go on to use connections that are closed.
    """
    working = asyncio.ensure_future(run_in_threadpool(work, *arguments, **named))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
