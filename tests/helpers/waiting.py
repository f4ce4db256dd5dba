"""Waiting for something to become true, and no longer."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 120.0
"""Generous: the machine may be busy. Only a test that fails waits so long."""


def until(condition: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    """What the condition gives as soon as it gives something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")
