"""What to do about a delivery, after a try to send it."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from tamis.catalog.outgoing import Attempt, Outbound
from tamis.sinks.webhook import Answer

GONE = 410
"""A webhook that answers so wants no more."""

BUSY = (429, 503)
"""One that answers so may say when to come again."""

LONGEST_WAIT = 86_400.0
"""Seconds; who asks for more is asked again after so many."""


def outcome_of(delivery: Outbound, answer: Answer, schedule: Sequence[float], at: datetime) -> Attempt:
    """What came of a try, and what is next. `schedule` has the seconds before each further one."""
    if answer.is_success:
        return Attempt(delivery, at)
    if answer.status == GONE:
        return Attempt(delivery, at, answer.description, gone=True)
    asked = answer.retry_after if answer.status in BUSY else None
    held = None if asked is None else at + timedelta(seconds=min(asked, LONGEST_WAIT))
    if delivery.tries >= len(schedule):
        return Attempt(delivery, at, answer.description, held_until=held)
    # Spread as wide as the pause is long: those who failed together do not come again together.
    later = at + timedelta(seconds=schedule[delivery.tries] * random.uniform(0.5, 1.5))
    return Attempt(delivery, at, answer.description, later if held is None else max(later, held), held)
