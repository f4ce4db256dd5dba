"""The loop of background tasks."""

import asyncio
import logging

import pytest

from tamis.errors import TamisError
from tamis.model.backoff import Backoff
from tamis.service.background import polling


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(1.0, 5.0)
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    backoff.reset()
    assert backoff.next() == 1.0


def test_a_failure_is_logged_once_and_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(polling, "RETRY_SECONDS", 0.0)
    outcomes: list[str | None] = ["gone", "gone", None, "gone again", None]
    stopped = asyncio.Event()

    async def work() -> None:
        reason = outcomes.pop(0)
        if not outcomes:
            stopped.set()
        if reason is not None:
            raise TamisError("unreachable", reason)

    with caplog.at_level(logging.ERROR, logger="tamis"):
        asyncio.run(polling.poll(work, interval=0.0, failing="nothing works", stopped=stopped))
    assert caplog.messages == ["nothing works: unreachable: gone", "nothing works: unreachable: gone again"]
