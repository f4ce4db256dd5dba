"""What a job is doing: a value first; JSON, terminal and Prometheus only render it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tamis.errors import TamisError
from tamis.process import Process

FILE = "status.json"
"""Its name in the state directory of a job."""

SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds between which the durations of batches are counted; the last count has none."""

JobState: TypeAlias = Literal["starting", "running", "stopping", "stopped", "died"]
"""A job that died did not come to write that it stopped; only a reader can tell."""

SourceState: TypeAlias = Literal["waiting", "running", "retrying", "stopped"]
"""Waiting: nothing came lately. Retrying: it failed, and no batch has come through since."""


class StatusError(TamisError):
    """A status that cannot be read or served."""


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
    lag: Mapping[str, float] | None
    """How much waits, by kind: files, messages. None if nobody knows."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, as far as it is told."""

    code: str
    reason: str
    when: datetime


@dataclass(frozen=True, slots=True)
class Totals:
    """What the batches since the start of the job add up to."""

    batches: int = 0
    read: int = 0
    matched: int = 0
    unmatched: int = 0
    dead: int = 0
    deliveries: int = 0
    candidates: int = 0
    seconds: float = 0.0
    durations: tuple[int, ...] = (0,) * (len(SECONDS) + 1)
    """How many batches took how long, by `SECONDS`."""

    def with_batch(self, report: BatchReport) -> "Totals":
        """These and one more batch."""
        place = next((at for at, bound in enumerate(SECONDS) if report.seconds <= bound), len(SECONDS))
        return Totals(
            batches=self.batches + 1,
            read=self.read + report.read,
            matched=self.matched + report.matched,
            unmatched=self.unmatched + report.unmatched,
            dead=self.dead + report.dead,
            deliveries=self.deliveries + report.deliveries,
            candidates=self.candidates + report.candidates,
            seconds=self.seconds + report.seconds,
            durations=tuple(count + (at == place) for at, count in enumerate(self.durations)),
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """What a second brought, lately."""

    messages: float = 0.0
    matches: float = 0.0
    """Of a message and a subscription: each is a delivery."""
    history: tuple[float, ...] = ()
    """Messages a second in the equal parts of the last minute, the newest last."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How a source is doing."""

    name: str
    state: SourceState
    last: BatchReport | None
    totals: Totals
    rates: Rates
    error: Failure | None
    """The last one, over or not: the state tells."""
    errors: Mapping[str, int]
    """How many there were, by code."""


@dataclass(frozen=True, slots=True)
class PartStatus:
    """A part of the job that is no source, such as the catalog, and that has failed."""

    failing: bool
    error: Failure
    errors: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Status:
    """How a job is doing."""

    job: str
    """An id of its own for each run."""
    version: str
    process: Process
    started: datetime
    now: datetime
    """When this was so."""
    state: JobState
    generation: int | None
    subscriptions: int | None
    sources: tuple[SourceStatus, ...]
    parts: Mapping[str, PartStatus] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        """Whether there is a job at work."""
        return self.state not in ("stopped", "died")

    @property
    def failing(self) -> bool:
        """Whether a part of it does not do what it should."""
        retrying = any(source.state == "retrying" for source in self.sources)
        return retrying or any(part.failing for part in self.parts.values())


def to_json(status: Status, indent: int | None = None) -> str:
    """A status as JSON; times are ISO 8601."""
    return json.dumps(asdict(status), default=datetime.isoformat, ensure_ascii=False, indent=indent)


def from_json(text: str) -> Status:
    """What `to_json` wrote."""
    value = json.loads(text)
    times = {name: datetime.fromisoformat(value[name]) for name in ("started", "now")}
    made: dict[str, Any] = {
        "process": Process(**value["process"]),
        "sources": tuple(map(_source, value["sources"])),
        "parts": {name: _part(part) for name, part in value["parts"].items()},
    }
    return Status(**{**value, **times, **made})


def _source(value: dict[str, Any]) -> SourceStatus:
    last, totals, rates = value["last"], value["totals"], value["rates"]
    made: dict[str, Any] = {
        "last": last and BatchReport(**{**last, "started": datetime.fromisoformat(last["started"])}),
        "totals": Totals(**{**totals, "durations": tuple(totals["durations"])}),
        "rates": Rates(**{**rates, "history": tuple(rates["history"])}),
        "error": value["error"] and _failure(value["error"]),
    }
    return SourceStatus(**{**value, **made})


def _part(value: dict[str, Any]) -> PartStatus:
    return PartStatus(**{**value, "error": _failure(value["error"])})


def _failure(value: dict[str, Any]) -> Failure:
    return Failure(**{**value, "when": datetime.fromisoformat(value["when"])})


def read_status(state: Path) -> Status:
    """The status of the job that has, or had, its state in a directory of this host.

    A job that is there no more, and did not say that it stopped, has died.
    """
    path = state / FILE
    try:
        status = from_json(path.read_text("utf-8"))
    except FileNotFoundError as error:
        reason = f"{path} is not there: no job ran with this state; name the directory of one that did"
        raise StatusError("no-status", reason) from error
    except (ValueError, TypeError, KeyError) as error:
        reason = f"{path} is not a status that this version of tamis can read; start the job again"
        raise StatusError("bad-status", reason) from error
    return status if not status.runs or status.process.lives else _died(status)


def _died(status: Status) -> Status:
    sources = tuple(replace(source, state="stopped", rates=Rates()) for source in status.sources)
    return replace(status, state="died", sources=sources)
