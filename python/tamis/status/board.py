"""The status board: a running job reports its events here, and others read the current status."""

import logging
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    LinkReport,
    SourceState,
    SourceStatus,
    Status,
)

log = logging.getLogger(__name__)

RATE_SLICES = 5
RATE_SECONDS = RATE_SLICES * SLICE_SECONDS
"""Rates are averages over the newest slices: 30 seconds."""

HEARTBEAT_SECONDS = 1.0
"""The file is rewritten this often even if nothing happens."""

WRITE_SECONDS = 0.25
"""The least time between two writes of batch events; state changes and failures are written at once."""

REASON_CHARACTERS = 300
"""Longer reasons are truncated: a JVM includes its stack trace."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class _Source:
    """The state of a source besides its last status."""

    status: SourceStatus
    recent: deque[tuple[datetime, BatchReport]] = field(default_factory=deque)
    """Batches of the last minute, each with its end time."""
    first: datetime | None = None
    """When the first batch began."""
    working: bool = False
    failing: bool = False


class StatusBoard:
    """The current status of a job; thread-safe. A failure to write `status.json` never stops the job."""

    def __init__(self, directory: Path, sources: Iterable[str] = (), clock: Clock = utc_now) -> None:
        """`directory`: the job's state directory. `sources`: their names, in display order."""
        self._directory = directory
        self._clock = clock
        self._lock = threading.RLock()
        self._sources = {name: _Source(SourceStatus(name)) for name in sources}
        self._listeners: list[Callable[[BatchReport], None]] = []
        self._state_listeners: list[Callable[[JobState], None]] = []
        self._written: datetime | None = None
        self._has_events = False
        """Whether events occurred since the file was written."""
        self._write_failure: Failure | None = None
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
        """The current status."""
        with self._lock:
            now = self._clock()
            sources = tuple(self._current(source, now) for source in self._sources.values())
            failure = self._job.failure or self._write_failure
            return replace(self._job, now=now, sources=sources, failure=failure)

    def state(self, state: JobState) -> None:
        """The job enters a state."""
        with self._lock:
            self._job = replace(self._job, state=state)
            self._write()
        for listener in self._state_listeners:
            listener(state)

    def generation(self, number: int, subscriptions: int | None) -> None:
        """The newest generation and its number of subscriptions: the catalog is reachable."""
        with self._lock:
            self._job = replace(self._job, generation=number, subscriptions=subscriptions, failure=None)
            self._event()

    def batch_started(self, source: str) -> None:
        """A batch of a source has started."""
        with self._lock:
            self._source(source).working = True
            self._event()

    def report(self, report: BatchReport) -> None:
        """A batch is done; this ends earlier failures of its source."""
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
            self._event()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(report)

    def failed(self, source: str | None, error: Exception) -> None:
        """A source failed and will be retried; without a source, the job itself (unreachable catalog)."""
        with self._lock:
            failure = Failure(*_code_and_reason(error), self._clock())
            if source is None:
                failures = _incremented(self._job.failures, failure.code)
                self._job = replace(self._job, failures=failures, failure=failure)
            else:
                failing = self._source(source)
                failing.working, failing.failing = False, True
                failures = _incremented(failing.status.failures, failure.code)
                failing.status = replace(failing.status, failures=failures, failure=failure)
            self._write()

    def lag(self, source: str, lag: Mapping[str, int]) -> None:
        """Record how much a source has left to read, known only after its last batch was reported."""
        with self._lock:
            last = self._source(source).status.last
            if last is not None and last.lag != lag:
                self._source(source).status = replace(
                    self._source(source).status, last=replace(last, lag=lag)
                )
                self._event()

    def links(self, links: Sequence[LinkReport]) -> None:
        """The links of a broker, as they are now."""
        with self._lock:
            if self._job.links != tuple(links):
                self._job = replace(self._job, links=tuple(links))
                self._event()

    def recovered(self, source: str) -> None:
        """A source that failed can be read again, before its next batch."""
        with self._lock:
            self._source(source).failing = False
            self._event()

    def heartbeat(self) -> None:
        """Call it often: writes new events, and keeps the file fresh when there are none."""
        with self._lock:
            if self._age() >= (WRITE_SECONDS if self._has_events else HEARTBEAT_SECONDS):
                self._write()

    def on_report(self, listener: Callable[[BatchReport], None]) -> None:
        """Call a listener with each report, in the thread that reports."""
        with self._lock:
            self._listeners.append(listener)

    def on_state(self, listener: Callable[[JobState], None]) -> None:
        """Call a listener with each new state of the job."""
        self._state_listeners.append(listener)

    def _source(self, name: str) -> _Source:
        return self._sources.setdefault(name, _Source(SourceStatus(name)))

    def _current(self, source: _Source, now: datetime) -> SourceStatus:
        """A source's status with the values that depend on the time."""
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
        recently = bool(source.recent) and (now - source.recent[-1][0]).total_seconds() <= RATE_SECONDS
        return "running" if source.working or recently else "waiting"

    def _event(self) -> None:
        """Write the status; if it was written less than a moment ago, the next heartbeat writes it."""
        self._has_events = True
        if self._age() >= WRITE_SECONDS:
            self._write()

    def _age(self) -> float:
        """The age of the file in seconds."""
        return inf if self._written is None else (self._clock() - self._written).total_seconds()

    def _write(self) -> None:
        status = self.now()
        self._written, self._has_events = status.now, False
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_status(status, self._directory)
            self._write_failure = None
        except OSError as error:
            # Log it once, not several times a second.
            if self._write_failure is None:
                log.warning("the status cannot be written to %s: %s", self._directory, error)
                self._write_failure = Failure("status-unwritable", str(error), status.now)


def _slices(
    batches: Iterable[tuple[datetime, BatchReport]], now: datetime
) -> tuple[list[float], list[float]]:
    """Messages and matches of the last minute by slice; a batch is spread over its duration."""
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


def _incremented(failures: Mapping[str, int], code: str) -> dict[str, int]:
    return {**failures, code: failures.get(code, 0) + 1}


def _code_and_reason(error: Exception) -> tuple[str, str]:
    """The code and the reason of an error; the code of a foreign exception is its type."""
    if isinstance(error, TamisError):
        return error.code, error.reason
    lines = str(error).strip().splitlines()
    return type(error).__name__, lines[0][:REASON_CHARACTERS] if lines else "no reason given"
