"""The retry policy of webhooks: done, retry later with jitter, or give up.

A receiver that answers 410 is disabled. One that answers 429 or 503 may set the delay by Retry-After.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from tamis.catalog.outgoing import Attempt, Outbound
from tamis.sinks.webhook import Answer

GONE = 410

BUSY = (429, 503)

MAX_RETRY_AFTER = 86_400.0
"""Seconds; a longer Retry-After is cut to this."""


def outcome_of(delivery: Outbound, answer: Answer, schedule: Sequence[float], at: datetime) -> Attempt:
    """The result of an attempt, with the time of the next one. `schedule`: seconds before each retry."""
    if answer.is_success:
        return Attempt(delivery, at)
    if answer.status == GONE:
        return Attempt(delivery, at, answer.description, gone=True)
    asked = answer.retry_after if answer.status in BUSY else None
    held = None if asked is None else at + timedelta(seconds=min(asked, MAX_RETRY_AFTER))
    if delivery.tries >= len(schedule):
        return Attempt(delivery, at, answer.description, held_until=held)
    # Jitter: deliveries that failed together are not retried together.
    later = at + timedelta(seconds=schedule[delivery.tries] * random.uniform(0.5, 1.5))
    return Attempt(delivery, at, answer.description, later if held is None else max(later, held), held)
