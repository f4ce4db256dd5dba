"""What one waits for: a message on its way through the running job, and the job until it has started."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.table import Table

from benches.checks import Check
from benches.running.job import JobFolder
from tamis.cli.progress import bar
from tamis.model.progress import Report
from tamis.workload import StockOptions, stock_messages, stock_subscriptions

WARM_UP_S = 20
"""Seconds of messages before those that count: Spark compiles what it has met often."""


@dataclass(frozen=True)
class LatencyWorkload:
    """Quotes that come one by one, each a file; the figures of the project are made with the defaults."""

    rate: int = 100
    """Messages a second."""
    seconds: int = 60
    subscriptions: int = 1_000_000
    starts: int = 3
    """So often is the job started with these subscriptions, and as often without."""

    def messages(self) -> Sequence[bytes]:
        """Those of the warm-up, and those that count."""
        number = self.rate * (WARM_UP_S + self.seconds)
        return list(islice(stock_messages(self._stock(), seed="1"), number))

    def queries(self) -> Sequence[str]:
        """Of which one in a while matches a quote."""
        return list(stock_subscriptions(self._stock(), seed="1"))

    def _stock(self) -> StockOptions:
        number = self.rate * (WARM_UP_S + self.seconds)
        return StockOptions(self.subscriptions, number, min(number, self.subscriptions))


@dataclass(frozen=True)
class LatencyResult:
    """The figures, in seconds."""

    messages: int
    rate: float
    """Messages that entered a second."""
    batches: int
    median_s: float
    """From a message's entry into the inbox until its delivery can be read; so are the next two."""
    p99_s: float
    most_s: float
    subscriptions: int
    start_s: float
    """From the start of the process until the first message is delivered, with a snapshot; the median."""
    empty_start_s: float
    """The same with an empty catalog, but for the one who reads everything."""
    start_ratio: float
    wrong: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def measure(workload: LatencyWorkload, *, report: Report | None = None) -> LatencyResult:
    """Start-ups in turns, then messages."""
    told = report or (lambda _done, _total: None)
    total = 2 + 2 * workload.starts
    told(0, total)
    with tempfile.TemporaryDirectory() as name:
        full, empty = JobFolder(Path(name) / "full"), JobFolder(Path(name) / "empty")
        full.make(workload.queries())
        empty.make()
        # The first of each makes a snapshot, and counts for nothing.
        taken: dict[JobFolder, list[float]] = {full: [], empty: []}
        for number in range(1 + workload.starts):
            for at, folder in enumerate((full, empty)):
                taken[folder].append(_start(folder, f"start-{number}.xml"))
                told(max(2 * number + at, 1), total)
        starts = {folder: median(seconds[1:]) for folder, seconds in taken.items()}
        before = full.batches
        entered = _feed(full, workload)
        told(total, total)
        readable, batches = full.delivered(), full.batches - before
    lost = entered.keys() - readable.keys()
    counted = list(entered)[workload.rate * WARM_UP_S :]
    waits = np.array([readable[name] - entered[name] for name in counted if name in readable])
    times = [entered[name] for name in counted]
    return LatencyResult(
        messages=len(counted),
        rate=(len(times) - 1) / (times[-1] - times[0]),
        batches=batches,
        median_s=float(np.median(waits)),
        p99_s=float(np.percentile(waits, 99)),
        most_s=float(waits.max()),
        subscriptions=workload.subscriptions,
        start_s=starts[full],
        empty_start_s=starts[empty],
        start_ratio=starts[full] / starts[empty],
        wrong=(f"{len(lost)} messages were not delivered",) if lost else (),
    )


def _start(folder: JobFolder, name: str) -> float:
    """How long a job takes from nothing to the delivery of a message that lies there."""
    folder.publish(name, b"<quote/>")
    before, start = folder.batches, time.monotonic()
    with folder.running() as job:
        job.wait(lambda: folder.batches > before)
        return time.monotonic() - start


def _feed(folder: JobFolder, workload: LatencyWorkload) -> dict[str, float]:
    """Let messages enter at the rate; when each did."""
    entered: dict[str, float] = {}
    with folder.running() as job:
        before = folder.batches
        folder.publish("first.xml", b"<quote/>")
        job.wait(lambda: folder.batches > before)
        start = time.monotonic()
        for number, message in enumerate(workload.messages()):
            time.sleep(max(0.0, start + number / workload.rate - time.monotonic()))
            entered[f"{number}.xml"] = folder.publish(f"{number}.xml", message)
        job.wait(lambda: job.read > len(entered))
        # A batch that an earlier run had begun is counted too.
        job.wait(lambda: entered.keys() <= folder.delivered().keys())
    return entered


def run(run: Mapping[str, Any]) -> tuple[dict[str, Any], list[Check], list[str]]:
    """A run of a workload's file: figures, bars, and what is wrong."""
    with bar(run["name"]) as report:
        result = measure(LatencyWorkload(**run["latency"]), report=report)
    named = {"median": ("message to delivery, median, s", result.median_s)}
    named["p99"] = ("message to delivery, 99 of 100, s", result.p99_s)
    named["start"] = ("start with a snapshot, × with an empty catalog", result.start_ratio)
    bars = run.get("bars", {})
    checks = [Check(*named[name], bars[name]) for name in named if name in bars]
    return result.as_dict(), checks, list(result.wrong)


def table(result: LatencyResult) -> Table:
    """For people."""
    about = f"{result.messages:,} messages, {result.rate:.0f} a second, in about {result.batches} batches"
    made = Table("", "seconds", title=about, title_justify="left")
    made.add_row("from the inbox to a delivery that can be read, median", f"{result.median_s:.2f}")
    made.add_row("99 of 100 within", f"{result.p99_s:.2f}")
    made.add_row("the last one", f"{result.most_s:.2f}")
    made.add_section()
    made.add_row("start of the job with an empty catalog", f"{result.empty_start_s:.2f}")
    about = f"with {result.subscriptions:,} subscriptions and a snapshot, {result.start_ratio:.2f} ×"
    made.add_row(about, f"{result.start_s:.2f}")
    return made
