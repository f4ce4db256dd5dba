"""Where a running job says what happens to it, and where anybody sees it."""

import logging
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

from tamis.engine import __version__
from tamis.errors import TamisError
from tamis.status.file import process_started, write_status
from tamis.status.value import (
    SLICE_SECONDS,
    SLICES,
    BatchReport,
    Failure,
    JobState,
    SourceState,
    SourceStatus,
    Status,
)

log = logging.getLogger(__name__)

RATE_SLICES = 5
RATE_SECONDS = RATE_SLICES * SLICE_SECONDS
"""Rates are over the newest slices: 30 seconds."""

BEAT = 1.0
"""Seconds after which the file is written again though nothing happened."""

LULL = 0.25
"""Seconds between two writings of what happens with every batch; states and failures do not wait."""

REASON_CHARACTERS = 300
"""A reason that is longer is cut: a JVM tells its whole stack."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class _Source:
    """What is kept of a source beside its last status."""

    status: SourceStatus
    recent: deque[tuple[datetime, BatchReport]] = field(default_factory=deque)
    """Batches of the last minute, each with its end."""
    first: datetime | None = None
    """When the first batch began."""
    working: bool = False
    failing: bool = False


class StatusBoard:
    """Thread-safe. What happens is soon in `status.json`; a failure to write it never stops the job."""

    def __init__(self, directory: Path, sources: Iterable[str] = (), clock: Clock = utc_now) -> None:
        """`directory`: the job's state. `sources`: their names, in the order they are shown in."""
        self._directory = directory
        self._clock = clock
        self._lock = threading.RLock()
        self._sources = {name: _Source(SourceStatus(name)) for name in sources}
        self._listeners: list[Callable[[BatchReport], None]] = []
        self._written: datetime | None = None
        self._news = False
        """Whether something has happened since the file was written."""
        self._unwritable = False
        now, pid = clock(), os.getpid()
        self._job = Status(
            job=uuid.uuid4().hex[:12],
            version=__version__,
            pid=pid,
            pid_started=process_started(pid),
            started=now,
            now=now,
            state="starting",
            generation=None,
            subscriptions=None,
            failure=None,
            failures={},
            sources=(),
        )

    def now(self) -> Status:
        """The status at this moment."""
        with self._lock:
            now = self._clock()
            sources = tuple(self._seen(source, now) for source in self._sources.values())
            return replace(self._job, now=now, sources=sources)

    def state(self, state: JobState) -> None:
        """The job goes from one state into another."""
        with self._lock:
            self._job = replace(self._job, state=state)
            self._write()

    def generation(self, number: int, subscriptions: int | None) -> None:
        """The newest generation, and how many subscriptions it has; the catalog could be asked."""
        with self._lock:
            self._job = replace(self._job, generation=number, subscriptions=subscriptions, failure=None)
            self._note()

    def began(self, source: str) -> None:
        """A batch is being worked on."""
        with self._lock:
            self._source(source).working = True
            self._note()

    def report(self, report: BatchReport) -> None:
        """A batch is done; so whatever failed before is overcome."""
        with self._lock:
            source = self._source(report.source)
            source.working = source.failing = False
            source.first = source.first or report.started
            source.recent.append((self._clock(), report))
            source.status = replace(
                source.status,
                last=report,
                totals=source.status.totals.plus(report),
                durations=source.status.durations.plus(report.seconds),
            )
            self._note()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(report)

    def failed(self, source: str | None, error: Exception) -> None:
        """A source failed and is tried again; without a source, the job cannot ask its catalog."""
        with self._lock:
            failure = Failure(*_told(error), self._clock())
            if source is None:
                failures = _one_more(self._job.failures, failure.code)
                self._job = replace(self._job, failures=failures, failure=failure)
            else:
                failing = self._source(source)
                failing.working, failing.failing = False, True
                failures = _one_more(failing.status.failures, failure.code)
                failing.status = replace(failing.status, failures=failures, failure=failure)
            self._write()

    def recovered(self, source: str) -> None:
        """A source that failed can be read again, though it has had no batch yet."""
        with self._lock:
            self._source(source).failing = False
            self._note()

    def beat(self) -> None:
        """To be called often: writes what has happened, and keeps the file fresh while nothing does."""
        with self._lock:
            if self._age() >= (LULL if self._news else BEAT):
                self._write()

    def on_report(self, listener: Callable[[BatchReport], None]) -> None:
        """Have each report handed on, from the thread that brings it."""
        with self._lock:
            self._listeners.append(listener)

    def _source(self, name: str) -> _Source:
        return self._sources.setdefault(name, _Source(SourceStatus(name)))

    def _seen(self, source: _Source, now: datetime) -> SourceStatus:
        """A source's status with what depends on the time."""
        while source.recent and source.recent[0][0] <= now - timedelta(seconds=SLICES * SLICE_SECONDS):
            source.recent.popleft()
        messages, matches = _slices(source.recent, now)
        seconds: float = RATE_SECONDS
        if source.first is not None:
            seconds = max(min(seconds, (now - source.first).total_seconds()), 0.001)
        return replace(
            source.status,
            state=self._source_state(source, now),
            messages_rate=round(sum(messages[-RATE_SLICES:]) / seconds, 3),
            matches_rate=round(sum(matches[-RATE_SLICES:]) / seconds, 3),
            minute=tuple(round(count / SLICE_SECONDS, 3) for count in messages),
        )

    def _source_state(self, source: _Source, now: datetime) -> SourceState:
        if not self._job.alive:
            return "stopped"
        if source.failing:
            return "retrying"
        lately = bool(source.recent) and (now - source.recent[-1][0]).total_seconds() <= RATE_SECONDS
        return "running" if source.working or lately else "waiting"

    def _note(self) -> None:
        """Write what happened, unless the file was written a moment ago: the next beat does it then."""
        self._news = True
        if self._age() >= LULL:
            self._write()

    def _age(self) -> float:
        """How old the file is, in seconds."""
        return inf if self._written is None else (self._clock() - self._written).total_seconds()

    def _write(self) -> None:
        status = self.now()
        self._written, self._news = status.now, False
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_status(status, self._directory)
            self._unwritable = False
        except OSError as error:
            # Once, not several times a second.
            if not self._unwritable:
                log.warning("the status is not written to %s: %s", self._directory, error)
            self._unwritable = True


def _slices(
    batches: Iterable[tuple[datetime, BatchReport]], now: datetime
) -> tuple[list[float], list[float]]:
    """The messages and matches of the last minute by slice; a batch is spread over the time that it took."""
    messages, matches = [0.0] * SLICES, [0.0] * SLICES
    start = now - timedelta(seconds=SLICES * SLICE_SECONDS)
    for end, report in batches:
        last = (end - start).total_seconds() / SLICE_SECONDS
        width = max(report.seconds / SLICE_SECONDS, 1e-6)
        first = last - width
        for at in range(max(int(first), 0), min(int(last) + 1, SLICES)):
            share = max(min(last, at + 1) - max(first, at), 0.0) / width
            messages[at] += report.read * share
            matches[at] += report.deliveries * share
    return messages, matches


def _one_more(failures: Mapping[str, int], code: str) -> dict[str, int]:
    return {**failures, code: failures.get(code, 0) + 1}


def _told(error: Exception) -> tuple[str, str]:
    """The code and the reason of an error; one that is not ours has its type for a code."""
    if isinstance(error, TamisError):
        return error.code, error.reason
    lines = str(error).strip().splitlines()
    return type(error).__name__, lines[0][:REASON_CHARACTERS] if lines else "no reason given"
