"""The outcome of an attempt, by the response."""

from datetime import UTC, datetime, timedelta

import pytest

from tamis.catalog.outgoing import Outbound
from tamis.service.webhooks.retry import outcome_of
from tamis.sinks.webhook import Answer

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
SCHEDULE = (10, 100, 1_000)


def outbound(tries: int) -> Outbound:
    """A delivery that was tried so often."""
    return Outbound("d", "", "bob", "m", "inbox", "s", 1, 1, AT, AT, None, None, b"<a/>", "hook", tries)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_success_is_done(status: int) -> None:
    done = outcome_of(outbound(2), Answer(status, retry_after=60), SCHEDULE, AT)
    assert (done.failure, done.next, done.held_until, done.gone, done.number) == (None, None, None, False, 3)


@pytest.mark.parametrize(
    "answer", [Answer(s) for s in (100, 301, 400, 401, 404, 429, 500, 503)] + [Answer(None, "x")]
)
def test_later_around_what_the_schedule_says_and_then_never(answer: Answer) -> None:
    for tries, pause in enumerate(SCHEDULE):
        waits = {outcome_of(outbound(tries), answer, SCHEDULE, AT).next for _ in range(50)}
        seconds = [(one - AT).total_seconds() for one in waits if one is not None]
        assert len(seconds) == len(waits) > 10
        assert 0.5 * pause <= min(seconds) < pause < max(seconds) <= 1.5 * pause
    last = outcome_of(outbound(3), answer, SCHEDULE, AT)
    assert (last.next, last.gone, last.failure) == (None, False, answer.description)


def test_gone_is_gone() -> None:
    done = outcome_of(outbound(0), Answer(410), SCHEDULE, AT)
    assert (done.gone, done.next) == (True, None)


@pytest.mark.parametrize(
    ("status", "asked", "held"),
    [
        (429, 500.0, 500),
        (503, 500.0, 500),
        (503, 1e9, 86_400),
        (503, 0.0, 0),
        (500, 500.0, None),
        (429, None, None),
    ],
)
def test_a_busy_receiver_may_set_the_delay(status: int, asked: float | None, held: int | None) -> None:
    done = outcome_of(outbound(0), Answer(status, retry_after=asked), SCHEDULE, AT)
    assert done.held_until == (None if held is None else AT + timedelta(seconds=held))
    assert done.next is not None
    # Not sooner than it asks for, nor sooner than it would be anyway.
    assert done.next >= AT + timedelta(seconds=max(5, held or 0))
