"""Reports of batches at times that a test chooses."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tamis.status import BatchReport, StatusBoard


class Clock:
    """A clock that only `sleep` advances."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def run_batch(
    board: StatusBoard,
    clock: Clock,
    source: str = "inbox",
    *,
    number: int = 0,
    seconds: float = 0.5,
    lag: Mapping[str, int] | None = None,
    messages: int = 100,
) -> BatchReport:
    """A batch of which six messages in ten match, three do not and one is dead."""
    started = clock()
    board.batch_started(source)
    clock.sleep(seconds)
    report = BatchReport(
        source=source,
        batch=number,
        generation=7,
        read=messages,
        matched=messages * 6 // 10,
        unmatched=messages * 3 // 10,
        dead=messages // 10,
        deliveries=messages * 2,
        candidates=messages * 3,
        started=started,
        seconds=seconds,
        lag=lag,
    )
    board.report(report)
    return report
