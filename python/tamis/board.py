"""The board that a job's threads write on, and that everybody reads the status from."""

import logging
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from tamis.engine import __version__
from tamis.errors import TamisError
from tamis.files import new_draft
from tamis.process import Process
from tamis.status import (
    FILE,
    BatchReport,
    Failure,
    JobState,
    PartStatus,
    Rates,
    SourceState,
    SourceStatus,
    Status,
    Totals,
    to_json,
)

log = logging.getLogger(__name__)

WRITE_EVERY = 0.3
"""Seconds between two writings of the file, but for the end of a batch and a change of state."""

WINDOW = 30.0
"""Seconds that rates are taken over."""

HISTORY, HISTORY_PARTS = 60.0, 12
"""Seconds that the history of a rate goes back, and the parts they are cut into."""

REASON_CHARACTERS = 300
"""Of an error's first line; Spark's have a stack trace below, and long ones."""


def _utc() -> datetime:
    return datetime.now(UTC)


class StatusBoard:
    """Safe for threads. Its own troubles, such as a full disk, are logged and stop nobody."""

    def __init__(
        self,
        state: Path,
        sources: Iterable[str],
        *,
        clock: Callable[[], datetime] = _utc,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """Times that are told are the clock's; ticks, in seconds, never go back.

        Nothing is written before the first word: the directory may be another job's yet.
        """
        self._path = state / FILE
        self._clock, self._ticks = clock, ticks
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._job, self._process = uuid.uuid4().hex, Process.own()
        self._started, self._first_tick = clock(), ticks()
        self._state: JobState = "starting"
        self._generation: int | None = None
        self._subscriptions: int | None = None
        self._sources = {name: _Source() for name in sources}
        self._parts: dict[str, _Errors] = {}
        self._busy_until = self._first_tick
        self._listeners: list[Callable[[BatchReport], None]] = []
        self._written: float | None = None
        self._unwritable = False

    def state(self, state: JobState) -> None:
        """The job is in another state."""
        with self._lock:
            self._state = state
            self._busy_until = self._ticks()
        self._write()

    def generation(self, number: int, subscriptions: int | None) -> None:
        """There is a new generation, of so many subscriptions."""
        with self._lock:
            self._generation, self._subscriptions = number, subscriptions
        self.tick()

    def began(self, source: str) -> None:
        """A batch of a source begins; `report` or `failed` ends it."""
        with self._lock:
            self._sources[source].at_work = True
        self.tick()

    def report(self, report: BatchReport) -> None:
        """A batch is done."""
        with self._lock:
            tick = self._ticks()
            self._sources[report.source].add(report, tick)
            if report.read:
                self._busy_until = tick
            listeners = tuple(self._listeners)
        self._write()
        for listener in listeners:
            listener(report)

    def failed(self, part: str, error: Exception) -> None:
        """A source has failed, or another part of the job: the catalog, say."""
        lines = str(error.reason if isinstance(error, TamisError) else error).strip().splitlines()
        code = error.code if isinstance(error, TamisError) else type(error).__name__
        failure = Failure(code, lines[0][:REASON_CHARACTERS] if lines else "", self._clock())
        with self._lock:
            if part in self._sources:
                self._sources[part].at_work = False
                self._sources[part].errors.add(failure)
            else:
                self._parts.setdefault(part, _Errors()).add(failure)
        self.tick()

    def recovered(self, part: str) -> None:
        """What has failed works again. A source's next report says so too."""
        with self._lock:
            errors = self._sources[part].errors if part in self._sources else self._parts.get(part)
            if errors is None or not errors.failing:
                return
            errors.failing = False
        self.tick()

    def listen(self, listener: Callable[[BatchReport], None]) -> None:
        """Have a function called with each report, by the thread that makes it."""
        with self._lock:
            self._listeners.append(listener)

    def idle(self) -> float:
        """Seconds since anything came, or since the job is ready for it."""
        with self._lock:
            busy = self._state == "starting" or any(source.at_work for source in self._sources.values())
            return 0.0 if busy else self._ticks() - self._busy_until

    def tick(self) -> None:
        """Write the file if it is due: rates go down while nothing happens."""
        with self._lock:
            written = self._written
        if written is None or self._ticks() - written >= WRITE_EVERY:
            self._write()

    def now(self) -> Status:
        """The status."""
        with self._lock:
            tick = self._ticks()
            return Status(
                job=self._job,
                version=__version__,
                process=self._process,
                started=self._started,
                now=self._clock(),
                state=self._state,
                generation=self._generation,
                subscriptions=self._subscriptions,
                sources=tuple(
                    source.status(name, self._state, tick, tick - self._first_tick)
                    for name, source in self._sources.items()
                ),
                parts={name: errors.status() for name, errors in self._parts.items()},
            )

    def _write(self) -> None:
        """Replace the file at once. Not flushed to disk: it is of no use to a machine that starts again."""
        with self._writing:
            with self._lock:
                self._written = self._ticks()
            draft = new_draft(self._path.parent)
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                draft.write_text(to_json(self.now()), "utf-8")
                draft.rename(self._path)
                self._unwritable = False
            except OSError as error:
                if not self._unwritable:
                    log.warning("the status is not written, the job goes on: %s", error)
                self._unwritable = True
                draft.unlink(missing_ok=True)


class _Errors:
    """The errors of a source or another part."""

    def __init__(self) -> None:
        self.failing = False
        self.last: Failure | None = None
        self.counts: Counter[str] = Counter()

    def add(self, failure: Failure) -> None:
        self.failing, self.last = True, failure
        self.counts[failure.code] += 1

    def status(self) -> PartStatus:
        assert self.last is not None, "a part is on the board from its first error"
        return PartStatus(self.failing, self.last, dict(self.counts))


class _Source:
    """A source, while it changes."""

    def __init__(self) -> None:
        self.at_work = False
        self.last: BatchReport | None = None
        self.totals = Totals()
        self.errors = _Errors()
        self.recent: deque[tuple[float, BatchReport]] = deque()
        """Batches of the last minute, with the tick of their end."""

    def add(self, report: BatchReport, tick: float) -> None:
        self.at_work = False
        self.last = report
        self.totals = self.totals.with_batch(report)
        self.errors.failing = False
        self.recent.append((tick, report))
        while self.recent[0][0] < tick - HISTORY:
            self.recent.popleft()

    def status(self, name: str, job: JobState, tick: float, age: float) -> SourceStatus:
        return SourceStatus(
            name=name,
            state=self._state(job, tick),
            last=self.last,
            totals=self.totals,
            rates=Rates() if job == "stopped" else self._rates(tick, age),
            error=self.errors.last,
            errors=dict(self.errors.counts),
        )

    def _state(self, job: JobState, tick: float) -> SourceState:
        if job == "stopped":
            return "stopped"
        if self.errors.failing:
            return "retrying"
        lately = any(end > tick - WINDOW and report.read for end, report in self.recent)
        return "running" if self.at_work or lately else "waiting"

    def _rates(self, tick: float, age: float) -> Rates:
        # A young job is measured by its age: its rate must not look as if it rose for half a minute.
        window = min(WINDOW, max(age, 1.0))
        part = HISTORY / HISTORY_PARTS
        history = (
            self._between(tick - (at + 1) * part, tick - at * part)[0] / part
            for at in reversed(range(HISTORY_PARTS))
        )
        messages, matches = self._between(tick - window, tick)
        return Rates(messages / window, matches / window, tuple(history))

    def _between(self, start: float, end: float) -> tuple[float, float]:
        """Messages and matches between two ticks, a batch's spread evenly over the time that it took."""
        messages = matches = 0.0
        for ended, report in self.recent:
            seconds = max(report.seconds, 0.001)
            share = max(0.0, min(ended, end) - max(ended - seconds, start)) / seconds
            messages += report.read * share
            matches += report.deliveries * share
        return messages, matches
