"""What there is to know of a job at one moment."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

JobState: TypeAlias = Literal["starting", "running", "stopping", "stopped", "died"]
"""A job that died did not say so: whoever reads its file finds its process gone."""

SourceState: TypeAlias = Literal["waiting", "running", "retrying", "stopped"]
"""waiting: for messages; running: a batch is worked on, or was a moment ago; retrying: after a failure."""

SLICES = 10
SLICE_SECONDS = 6
"""The last minute is remembered in slices."""

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds that batches are sorted by; there is one more class for those that take longer."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What came of a batch: read = matched + unmatched + dead."""

    source: str
    batch: int
    generation: int
    read: int
    matched: int
    unmatched: int
    dead: int
    deliveries: int
    candidates: int
    started: datetime
    seconds: float
    failed: int = 0
    """Transformations that could not be made: as many deliveries there are not."""
    lag: Mapping[str, int] | None = None
    """How much there is still to read, by what is counted (files, messages); None if unknown."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What came of all batches since the job started."""

    batches: int = 0
    read: int = 0
    matched: int = 0
    unmatched: int = 0
    dead: int = 0
    deliveries: int = 0
    candidates: int = 0
    failed: int = 0

    def plus(self, report: BatchReport) -> "Totals":
        """With one batch more."""
        return Totals(
            self.batches + 1,
            self.read + report.read,
            self.matched + report.matched,
            self.unmatched + report.unmatched,
            self.dead + report.dead,
            self.deliveries + report.deliveries,
            self.candidates + report.candidates,
            self.failed + report.failed,
        )


@dataclass(frozen=True, slots=True)
class Durations:
    """How long batches took."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """How many took at most each of `BOUNDS` and longer than the one before; last, those beyond all."""
    seconds: float = 0.0
    """All together."""

    def plus(self, seconds: float) -> "Durations":
        """With one batch more."""
        at = bisect_left(BOUNDS, seconds)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return Durations(counts, self.seconds + seconds)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, as it is told."""

    code: str
    reason: str
    when: datetime


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source."""

    name: str
    state: SourceState = "waiting"
    messages_rate: float = 0.0
    """Messages a second, over the last 30 seconds."""
    matches_rate: float = 0.0
    """Deliveries a second, likewise."""
    minute: tuple[float, ...] = (0.0,) * SLICES
    """Messages a second in each slice of the last minute, the newest last."""
    last: BatchReport | None = None
    totals: Totals = Totals()
    durations: Durations = Durations()
    failures: Mapping[str, int] = field(default_factory=dict)
    """How often the source failed, by code."""
    failure: Failure | None = None
    """The last one; it may be overcome, which the state tells."""


@dataclass(frozen=True, slots=True)
class Status:
    """The job."""

    job: str
    """The id of this run."""
    version: str
    """Of tamis."""
    pid: int
    pid_started: int | None
    """When the process began, in the system's own count: another one may get the same pid."""
    started: datetime
    now: datetime
    state: JobState
    generation: int | None
    """The newest; None before there is one."""
    subscriptions: int | None
    """That are matched against; None if unknown."""
    failure: Failure | None
    """What keeps the job from being up to date, such as an unreachable catalog; None once it is overcome."""
    failures: Mapping[str, int]
    """How often that happened, by code."""
    sources: tuple[SourceStatus, ...]

    @property
    def alive(self) -> bool:
        """Whether the job still does something."""
        return self.state not in ("stopped", "died")

    @property
    def failing(self) -> bool:
        """Whether something is wrong that the job tries to overcome."""
        return self.alive and (
            self.failure is not None or any(source.state == "retrying" for source in self.sources)
        )
