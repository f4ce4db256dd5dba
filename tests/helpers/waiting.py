"""Waits for a condition."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 120.0
"""Generous: the machine may be busy. Only a test that fails waits so long."""


def until(condition: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    """The first true value of the condition; fails after a time-out."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")
