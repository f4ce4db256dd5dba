"""Waiting until a subscription is established in a network of brokers."""

import sys
import time
from collections.abc import Callable

from tamis.errors import TamisError
from tamis.model.subscription import Established

PAUSE = 0.2
"""Seconds between two looks."""


class WaitError(TamisError):
    """A subscription that is not established."""


def wait_until_established(look: Callable[[], Established | None], seconds: float) -> None:
    """Return once it is established at all brokers; `WaitError` if it is not in time, or cannot be."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found is None:
            reason = "there is no network of brokers: [broker] is missing in the settings"
            raise WaitError("no-network", reason)
        if not found.missing:
            print(f"established at {', '.join(found.brokers)}", file=sys.stderr)
            return
        if time.monotonic() > end:
            missing = ", ".join(found.missing)
            reason = f"after {seconds:g} s not established at {missing}; it is registered, and will be"
            raise WaitError("not-established", f"{reason} once these brokers and the links to them work")
        time.sleep(PAUSE)
