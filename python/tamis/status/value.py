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
    """The source whose batch it is."""
    batch: int
    """The number of the batch, from 0."""
    generation: int
    """The generation that its messages were matched against."""
    read: int
    """Messages that were read."""
    matched: int
    """Messages that match a subscription."""
    unmatched: int
    """Messages that match none."""
    dead: int
    """Messages that were refused: they are dead letters."""
    deliveries: int
    """Deliveries that were made."""
    candidates: int
    """Queries that the matcher had to test."""
    started: datetime
    """When the batch began."""
    seconds: float
    """How long it took."""
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
    """Batches that are done."""
    read: int = 0
    """Messages that were read."""
    matched: int = 0
    """Messages that match a subscription."""
    unmatched: int = 0
    """Messages that match none."""
    dead: int = 0
    """Messages that were refused: they are dead letters."""
    deliveries: int = 0
    """Deliveries that were made."""
    candidates: int = 0
    """Queries that the matcher had to test."""
    failed: int = 0
    """Failed transformations."""
    skipped_entities: int = 0
    """References to entities that were left out of messages."""
    settled: int = 0
    """Candidates that were decided from what the automaton found."""
    verified: int = 0
    """Candidates that were decided on the message itself."""
    steps: int = 0
    """Steps that verification took."""
    looked_up: int = 0
    """How often verification looked elements up by value."""
    uncached: int = 0
    """Messages that were matched without the automaton's cache."""

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
    """A stable code for programs."""
    reason: str
    """What is wrong, for people."""
    when: datetime
    """When it happened."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source."""

    name: str
    """Its name."""
    state: SourceState = "waiting"
    """`waiting` for messages, `running`, `retrying` after a failure, or `stopped`."""
    messages_rate: float = 0.0
    """Messages a second, over the last 30 seconds."""
    matches_rate: float = 0.0
    """Deliveries a second, over the last 30 seconds."""
    minute: tuple[float, ...] = (0.0,) * SLICES
    """Messages a second in each slice of the last minute, the newest last."""
    last: BatchReport | None = None
    """Its last batch."""
    totals: Totals = Totals()
    """The sums over its batches."""
    durations: Durations = Durations()
    """How long its batches took."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """How often the source failed, by code."""
    failure: Failure | None = None
    """The last one; unless the state is `retrying`, it is over."""


@dataclass(frozen=True, slots=True)
class LinkReport:
    """One end of a link. Messages and bytes are those since the job started."""

    link: str
    """The name of the link."""
    neighbour: str
    """The broker at its other end."""
    state: LinkState
    """Whether it works."""
    code: str = ""
    """The code of the error, if it does not."""
    reason: str = ""
    """Why it does not work, or why the neighbour's routes cannot be used."""
    waiting: int = 0
    """Parcels that the neighbour has not acknowledged."""
    waiting_bytes: int = 0
    """Their bytes."""
    most_bytes: int = 0
    """The log is full with so many of them."""
    pressed: bool = False
    """Whether the log is full, or that of a link behind the neighbour: the broker's sources wait."""
    routed: bool = False
    """Whether the neighbour is sent only what it wants; else everything."""
    routes: int = 0
    """Rows of what it wants."""
    agreed: bool = False
    """Whether it has acknowledged what was advertised to it last."""
    offered: int = 0
    """Messages that would have crossed to it if it were sent everything."""
    messages: int = 0
    """Messages that did."""
    bytes: int = 0
    """Bytes of their parcels."""
    received: int = 0
    """Messages that crossed from it."""
    in_vain: int = 0
    """Of those, messages that neither a subscription here nor another neighbour wanted."""


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
    """The current failure of the job itself, such as an unreachable catalog; None if there is none."""
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
