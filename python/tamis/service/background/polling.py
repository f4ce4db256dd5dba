"""The polling loop of every background task, with backoff while the work fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tamis.errors import TamisError

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Seconds between attempts while they fail, at least."""


async def poll(
    work: Callable[[], Awaitable[None]],
    *,
    interval: float,
    failing: str,
    stopped: asyncio.Event | None = None,
) -> None:
    """Call `work`, again `interval` seconds after each call, until `stopped` is set or the task is cancelled.

    A `TamisError` is logged, once for as long as calls keep failing: `failing` says what does not work. Any
    other error ends the loop.
    """
    stopped = stopped or asyncio.Event()
    failed = False
    while not stopped.is_set():
        try:
            await work()
            failed = False
        except TamisError as error:
            if not failed:
                log.error("%s: %s", failing, error)
            failed = True
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), max(interval, RETRY_SECONDS) if failed else interval)
