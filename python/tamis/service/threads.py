"""Work in threads, for tasks that may be cancelled."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Work in a thread; who is cancelled meanwhile waits for its end.

    A thread cannot be cancelled: it would go on with connections that are closed around it.
    """
    working = asyncio.ensure_future(run_in_threadpool(work, *arguments, **named))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
