"""What one waits for, beside the least that Spark can do: the start of a job, a message, a small command.

Each figure is a ratio of medians of runs in turns. The stream beside `tamis run` is `bare_stream.py`.
The command `tamis match` is measured beside lxml parsing the same document in a Python of its own.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from rich.table import Table

from benches.checks import Check
from benches.running.job import PATIENCE_S, JobBenchError, JobFolder
from tamis.cli.progress import bar
from tamis.jvm.class_archive import cache_folder
from tamis.model.progress import Report

INTERVAL_S = 0.5
"""The trigger of both streams; that of `tamis run` unless set."""

WARM_UP_S = 20
"""Seconds of messages before those that count."""


@dataclass(frozen=True)
class StartWorkload:
    """The figures of the project are made with the defaults."""

    starts: int = 5
    """Starts of each stream."""
    single: int = 30
    """Messages that enter one at a time."""
    rate: int = 100
    """Messages a second of those that do not wait for each other."""
    seconds: int = 30
    commands: int = 21
    """Runs of each command."""


@dataclass(frozen=True)
class StartResult:
    """Medians in seconds: of tamis and of what stands beside it."""

    start_s: float
    """From the start of the process until the first message is delivered."""
    bare_start_s: float
    single_s: float
    """From a message's entry until its delivery can be read, if no other is under way."""
    bare_single_s: float
    rate_s: float
    """The same if messages enter at the rate."""
    bare_rate_s: float
    match_s: float
    """`tamis match` of one document."""
    lxml_s: float
    messages: int
    """Messages of each stream, all delivered."""
    wrong: tuple[str, ...] = ()

    def ratios(self) -> dict[str, float]:
        """Of tamis to what stands beside it."""
        return {
            "start": self.start_s / self.bare_start_s,
            "single": self.single_s / self.bare_single_s,
            "rate": self.rate_s / self.bare_rate_s,
            "match": self.match_s / self.lxml_s,
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        figures = asdict(self) | {f"{name}_ratio": ratio for name, ratio in self.ratios().items()}
        return {
            name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()
        }


class Stream(Protocol):
    """`tamis run` or the stream beside it."""

    def publish(self, name: str, message: bytes) -> float: ...
    def delivered(self) -> dict[str, float]: ...
    @property
    def batches(self) -> int: ...
    @contextmanager
    def started(self) -> Iterator[None]:
        """The stream as a process that has begun to start, ended afterwards."""


@dataclass(frozen=True)
class TamisStream:
    """`tamis run`."""

    folder: JobFolder

    def publish(self, name: str, message: bytes) -> float:
        return self.folder.publish(name, message)

    def delivered(self) -> dict[str, float]:
        return self.folder.delivered()

    @property
    def batches(self) -> int:
        return self.folder.batches

    @contextmanager
    def started(self) -> Iterator[None]:
        with self.folder.running():
            yield


@dataclass(frozen=True)
class BareStream:
    """The stream of `bare_stream.py`. Its messages name themselves: all that it keeps is text."""

    path: Path
    trigger: str | None = None

    def make(self) -> None:
        (self.path / "inbox").mkdir(parents=True)

    def publish(self, name: str, message: bytes) -> float:
        draft = self.path / "inbox" / f".{name}"
        draft.write_bytes(message)
        now = time.time()
        draft.rename(self.path / "inbox" / name)
        return now

    def delivered(self) -> dict[str, float]:
        found: dict[str, float] = {}
        log = self.path / "outbox" / "_spark_metadata"
        known: set[str] = set()
        # Every tenth batch has no log of its own: `9.compact` repeats those before it.
        for batch in sorted(log.glob("[0-9]*"), key=lambda path: int(path.stem)):
            readable = batch.stat().st_ctime
            for part in set(_parts(batch.read_text())) - known:
                known.add(part)
                lines = Path(part).read_text().split()
                names = [line.removeprefix('name="').removesuffix('"/>') for line in lines]
                found |= dict.fromkeys((name for name in names if name.endswith(".xml")), readable)
        return found

    @property
    def batches(self) -> int:
        return sum(1 for _ in (self.path / "outbox" / "_spark_metadata").glob("[0-9]*"))

    @contextmanager
    def started(self) -> Iterator[None]:
        command = [sys.executable, "-m", "benches.running.bare_stream", str(self.path)]
        command += [] if self.trigger is None else [self.trigger]
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with (self.path / "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
            try:
                yield
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _parts(log: str) -> Iterator[str]:
    """The files in the log of Spark's file sink: a version, then a line of JSON for each file."""
    for line in log.splitlines()[1:]:
        yield json.loads(line)["path"].removeprefix("file://")


def measure(workload: StartWorkload, *, report: Report | None = None) -> StartResult:
    """Commands, starts in turns, then messages."""
    report_progress = report or (lambda _done, _total: None)
    total = workload.starts + 4
    report_progress(0, total)
    match_s, lxml_s = _commands(workload.commands)
    with tempfile.TemporaryDirectory() as name:
        folder = JobFolder(Path(name) / "tamis")
        folder.make()
        tamis, bare = TamisStream(folder), BareStream(Path(name) / "bare")
        bare.make()
        _make_archive(tamis)
        report_progress(1, total)
        starts: dict[Stream, list[float]] = {tamis: [], bare: []}
        for number in range(workload.starts):
            for stream, taken in starts.items():
                taken.append(_start(stream, f"start-{number}.xml"))
            report_progress(number + 2, total)
        with_trigger = replace(bare, trigger=f"{INTERVAL_S} seconds")
        waits = {stream: _messages(stream, workload) for stream in (tamis, with_trigger)}
        report_progress(total, total)
        expected = workload.starts + 1 + workload.single + workload.rate * (WARM_UP_S + workload.seconds)
        wrong = []
        for title, stream, more in (("tamis", tamis, 1), ("the bare stream", bare, 0)):
            count = len(stream.delivered())
            if count != expected + more:
                wrong.append(f"{title}: {count} messages were delivered where {expected + more} are expected")
    return StartResult(
        start_s=median(starts[tamis]),
        bare_start_s=median(starts[bare]),
        single_s=waits[tamis][0],
        bare_single_s=waits[with_trigger][0],
        rate_s=waits[tamis][1],
        bare_rate_s=waits[with_trigger][1],
        match_s=match_s,
        lxml_s=lxml_s,
        messages=expected,
        wrong=tuple(wrong),
    )


def _make_archive(tamis: Stream) -> None:
    """Let the first job make its archive of classes; it counts for nothing."""
    with tamis.started():
        tamis.publish("archive.xml", _message("archive.xml"))
        _until(lambda: tamis.batches > 0 and any(cache_folder().glob("*.jsa")))


def _start(stream: Stream, name: str) -> float:
    """How long a stream takes from nothing to the delivery of a message that lies there."""
    stream.publish(name, _message(name))
    before, start = stream.batches, time.monotonic()
    with stream.started():
        _until(lambda: stream.batches > before)
        return time.monotonic() - start


def _messages(stream: Stream, workload: StartWorkload) -> tuple[float, float]:
    """The median wait of messages one at a time, and at the rate."""
    entered: dict[str, float] = {}

    def publish(name: str) -> None:
        entered[name] = stream.publish(name, _message(name))

    with stream.started():
        _publish_and_wait(stream, publish, "first.xml")
        start = time.monotonic()
        for number in range(workload.rate * (WARM_UP_S + workload.seconds)):
            time.sleep(max(0.0, start + number / workload.rate - time.monotonic()))
            publish(f"rate-{number}.xml")
        _until(lambda: entered.keys() <= stream.delivered().keys())
        for number in range(workload.single):
            # At another point of the trigger's interval each time.
            time.sleep(INTERVAL_S + INTERVAL_S * number / workload.single)
            _publish_and_wait(stream, publish, f"single-{number}.xml")
        _until(lambda: entered.keys() <= stream.delivered().keys())
        readable = stream.delivered()
    waits = {name: readable[name] - at for name, at in entered.items()}
    skipped = workload.rate * WARM_UP_S
    at_rate = [waits[f"rate-{n}.xml"] for n in range(skipped, workload.rate * (WARM_UP_S + workload.seconds))]
    return median(waits[f"single-{n}.xml"] for n in range(workload.single)), median(at_rate)


def _publish_and_wait(stream: Stream, publish: Callable[[str], None], name: str) -> None:
    before = stream.batches
    publish(name)
    _until(lambda: stream.batches > before)


def _message(name: str) -> bytes:
    return f'<quote name="{name}"/>\n'.encode()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise JobBenchError("no-progress", "a stream got nowhere")
        time.sleep(0.01)


def _commands(rounds: int) -> tuple[float, float]:
    """The medians of `tamis match` of one document, and of lxml parsing it."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "quote.xml")
        document.write_text("<quotes>" + "<quote name='a'>1</quote>" * 100 + "</quotes>")
        tamis = [str(Path(sys.executable).with_name("tamis")), "match", "-q", "//quote", str(document)]
        lxml = [sys.executable, "-c", "import sys, lxml.etree; lxml.etree.parse(sys.argv[1])", str(document)]
        taken: dict[str, list[float]] = {"tamis": [], "lxml": []}
        for _ in range(rounds):
            for name, command in (("tamis", tamis), ("lxml", lxml)):
                start = time.monotonic()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                taken[name].append(time.monotonic() - start)
    return median(taken["tamis"]), median(taken["lxml"])


TITLES = {
    "start": "start to the first delivery, × the bare stream's",
    "single": "one message at a time, × the bare stream's",
    "rate": "messages at the rate, × the bare stream's",
    "match": "tamis match, × lxml parsing",
}


def run(run: Mapping[str, Any]) -> tuple[dict[str, Any], list[Check], list[str]]:
    """A run of a workload's file: figures, bars, and what is wrong."""
    with bar(run["name"]) as report:
        result = measure(StartWorkload(**run["start"]), report=report)
    ratios, bars = result.ratios(), run.get("bars", {})
    checks = [Check(TITLES[name], ratios[name], bars[name]) for name in ratios if name in bars]
    return result.as_dict(), checks, list(result.wrong)


def table(result: StartResult) -> Table:
    """For people."""
    made = Table("median, s", "tamis", "beside it", "ratio", title_justify="left")
    rows = {
        "start": (result.start_s, result.bare_start_s),
        "single": (result.single_s, result.bare_single_s),
        "rate": (result.rate_s, result.bare_rate_s),
        "match": (result.match_s, result.lxml_s),
    }
    for name, (ours, other) in rows.items():
        made.add_row(TITLES[name].split(",")[0], f"{ours:.2f}", f"{other:.2f}", f"{ours / other:.2f}")
    return made
