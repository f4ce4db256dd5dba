"""Runs `tamis run` in a child process, and reads what it has done."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamis.generations.manifest import Manifest
from tamis.pipeline.batch_log import BatchLog, BatchRecord
from tamis.sinks.dead_letters import DeadLetters
from tamis.sinks.outbox import Outbox
from tamis.status import Status, StatusError, read_status
from tests.helpers.waiting import until

TAMIS = [sys.executable, "-c", "import sys; from tamis.cli import main; sys.exit(main())"]

LOCAL = """
[spark]
master = "local[2]"
config = { "spark.driver.memory" = "1g" }
"""


@dataclass
class Folder:
    """The folder that a job works in."""

    path: Path
    more: str = ""
    """Lines of `tamis.toml`, beside the usual."""
    spark: str = LOCAL
    log: Path = Path("job.log")
    """The file with the output of the job; by default in the folder."""
    versions: dict[int, int] = field(default_factory=dict)
    """Generations that were seen, and the version of the catalog that each shows."""
    published: dict[int, datetime] = field(default_factory=dict)
    """When each of them was there at the latest."""

    def __post_init__(self) -> None:
        self.log = self.path / self.log
        (self.path / "inbox").mkdir(parents=True, exist_ok=True)
        (self.path / "tamis.toml").write_text(f"interval = 0.2\n{self.spark}\n{self.more}")

    @property
    def catalog(self) -> str:
        return str(self.path / "tamis.db")

    @property
    def state(self) -> Path:
        return self.path / "state"

    def publish(self, name: str, content: bytes) -> None:
        """Put a file into the inbox."""
        self.enter(self.draft(name, content))

    def draft(self, name: str, content: bytes) -> Path:
        """Write a file beside the inbox, to be renamed into it by `enter`."""
        draft = self.path / "inbox" / f".{name}"
        draft.write_bytes(content)
        return draft

    def enter(self, draft: Path) -> None:
        """Rename a draft into the inbox."""
        draft.rename(draft.with_name(draft.name[1:]))

    def deliveries(self) -> list[dict[str, Any]]:
        """All deliveries in the outbox, with duplicates."""
        outbox = Outbox(self.path / "outbox")
        return [row for one in outbox.published() for batch in outbox.read(one) for row in batch.to_pylist()]

    def letters(self) -> list[dict[str, Any]]:
        """All dead letters."""
        letters = DeadLetters(self.path / "dead-letters")
        return [
            row for one in letters.published() for batch in letters.read(one) for row in batch.to_pylist()
        ]

    def records(self, source: str = "inbox") -> list[BatchRecord]:
        """The records of the batch logs, by checkpoint."""
        folder = self.state / "batches" / source
        files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
        return [record for file in files for record in BatchLog(folder, file.stem).records()]

    def read(self, source: str = "inbox") -> int:
        """How many messages finished batches have read."""
        return sum(record.counts.read for record in self.records(source) if record.counts is not None)

    def status(self) -> Status | None:
        try:
            return read_status(self.state)
        except StatusError:
            return None

    def look_at_generations(self) -> None:
        """Record each generation with its version and the time, before it is swept."""
        for path in (self.state / "generations").glob("generation-*.json"):
            number = Manifest.number_in(path.name)
            if number is not None and number not in self.versions:
                try:
                    self.versions[number] = json.loads(path.read_bytes())["version"]["count"]
                    self.published[number] = datetime.now(UTC)
                except (FileNotFoundError, ValueError):
                    continue


@dataclass(frozen=True)
class Job:
    """A job that runs."""

    process: "subprocess.Popen[bytes]"
    folder: Folder

    def kill(self) -> None:
        """Kill the whole process group at once: the driver, Spark, and the workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop the job by SIGTERM, as an operator does."""
        self.process.terminate()
        return self.process.wait(timeout=120)

    def kill_workers(self) -> int:
        """Kill only the Python workers; returns how many there were."""
        killed = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                    ours = os.getpgid(int(entry.name)) == self.process.pid
                except OSError:
                    continue
                if ours and b".daemon" in command:
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed += 1
        return killed


@contextmanager
def running(folder: Folder, *arguments: str) -> Iterator[Job]:
    """A job in a folder, ended afterwards however the test ends."""
    log = folder.log.open("ab")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAMIS_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [*TAMIS, "run", "--config", str(folder.path / "tamis.toml"), *arguments]
    process = subprocess.Popen(
        command, stdout=log, stderr=log, env=environment, cwd=folder.path, start_new_session=True
    )
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            folder.look_at_generations()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield Job(process, folder)
    finally:
        ended.set()
        looking.join()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.close()


def until_running(job: Job) -> None:
    """Wait until the job reads its sources."""

    def runs() -> bool:
        if job.process.poll() is not None:
            raise AssertionError(job.folder.log.read_text())
        status = job.folder.status()
        return status is not None and status.pid == job.process.pid and status.state == "running"

    until(runs, "the job")


def forget_checkpoints(folder: Folder) -> None:
    """Remove the checkpoints, as an operator does to start again."""
    shutil.rmtree(folder.state / "checkpoints")
