"""The status of a job at one moment, as immutable values."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from tamis.model.link import LinkState

JobState: TypeAlias = Literal["starting", "running", "stopping", "stopped", "died"]
"""died: the status file says that it runs, but its process is gone."""

SourceState: TypeAlias = Literal["waiting", "running", "retrying", "stopped"]
"""waiting: for messages; running: a batch is in progress or ended recently; retrying: after a failure."""

SLICES = 10
SLICE_SECONDS = 6
"""The last minute is kept in slices of six seconds."""

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Histogram bounds in seconds; there is one more bucket for longer batches."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The counts of a batch: read = matched + unmatched + dead."""

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
    """Failed transformations: each is one delivery less."""
    skipped_entities: int = 0
    """References to entities that were not read, which were left out of messages."""
    settled: int = 0
    """Candidates that were decided from what the automaton found."""
    verified: int = 0
    """Candidates that were decided on the message itself."""
    steps: int = 0
    """Steps that verification took: nodes that were tried, and text that was searched."""
    looked_up: int = 0
    """How often verification looked elements up by value."""
    uncached: int = 0
    """Messages that were matched without the automaton's cache, which had no room for them."""
    cache_bytes: int = 0
    """Bytes in the caches of the worker with most."""
    subscription_bytes: int = 0
    """Bytes of the table of subscriptions that a worker maps."""
    lag: Mapping[str, int] | None = None
    """How much is left to read, by unit (files, messages); None if unknown."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over all batches since the job started."""

    batches: int = 0
    read: int = 0
    matched: int = 0
    unmatched: int = 0
    dead: int = 0
    deliveries: int = 0
    candidates: int = 0
    failed: int = 0
    skipped_entities: int = 0
    settled: int = 0
    verified: int = 0
    steps: int = 0
    looked_up: int = 0
    uncached: int = 0

    def plus(self, report: BatchReport) -> "Totals":
        """Add one batch."""
        return Totals(
            self.batches + 1,
            self.read + report.read,
            self.matched + report.matched,
            self.unmatched + report.unmatched,
            self.dead + report.dead,
            self.deliveries + report.deliveries,
            self.candidates + report.candidates,
            self.failed + report.failed,
            self.skipped_entities + report.skipped_entities,
            self.settled + report.settled,
            self.verified + report.verified,
            self.steps + report.steps,
            self.looked_up + report.looked_up,
            self.uncached + report.uncached,
        )


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of batch durations."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """Batches per bucket of `BOUNDS`; the last bucket has those beyond all bounds."""
    seconds: float = 0.0
    """The sum of all durations."""

    def plus(self, seconds: float) -> "Durations":
        """Add one batch."""
        at = bisect_left(BOUNDS, seconds)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return Durations(counts, self.seconds + seconds)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error with its time."""

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
    """Deliveries a second, over the last 30 seconds."""
    minute: tuple[float, ...] = (0.0,) * SLICES
    """Messages a second in each slice of the last minute, the newest last."""
    last: BatchReport | None = None
    totals: Totals = Totals()
    durations: Durations = Durations()
    failures: Mapping[str, int] = field(default_factory=dict)
    """How often the source failed, by code."""
    failure: Failure | None = None
    """The last one; unless the state is `retrying`, it is over."""


@dataclass(frozen=True, slots=True)
class LinkReport:
    """One end of a link. Messages and bytes are those since the job started."""

    link: str
    neighbour: str
    state: LinkState
    code: str = ""
    reason: str = ""
    """Why it does not work, or why the neighbour's routes cannot be used."""
    waiting: int = 0
    """Parcels that the neighbour has not acknowledged."""
    routed: bool = False
    """Whether the neighbour is sent only what it wants; else everything."""
    routes: int = 0
    """Rows of what it wants."""
    agreed: bool = False
    """Whether it has acknowledged what it was told last."""
    offered: int = 0
    """Messages that would have crossed to it if it were sent everything."""
    messages: int = 0
    """Messages that did."""
    bytes: int = 0
    """Bytes of their parcels."""
    received: int = 0
    """Messages that crossed from it."""


@dataclass(frozen=True, slots=True)
class Status:
    """The job."""

    job: str
    """The id of this run."""
    version: str
    """Of tamis."""
    pid: int
    pid_started: int | None
    """The start time of the process in clock ticks: another process may reuse the pid."""
    started: datetime
    now: datetime
    state: JobState
    generation: int | None
    """The newest; None before there is one."""
    subscriptions: int | None
    """Subscriptions in the newest generation; None if unknown."""
    failure: Failure | None
    """What keeps the job from being up to date, such as an unreachable catalog; None once it is over."""
    failures: Mapping[str, int]
    """How often that happened, by code."""
    sources: tuple[SourceStatus, ...]
    links: tuple[LinkReport, ...] = ()
    """The links of a broker."""

    @property
    def alive(self) -> bool:
        """Whether the job has not ended."""
        return self.state not in ("stopped", "died")

    @property
    def failing(self) -> bool:
        """Whether the job is retrying after a failure."""
        return self.alive and (
            self.failure is not None or any(source.state == "retrying" for source in self.sources)
        )
