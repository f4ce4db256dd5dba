"""`tamis run` in a process of its own, as people run it, to be timed from outside."""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tamis.catalog import Catalog
from tamis.cli.processes import LOG, launched
from tamis.errors import TamisError
from tamis.model.subscription import NewSubscription
from tamis.sinks.outbox import Outbox
from tamis.status import StatusError, read_status

SETTINGS = """
[spark]
master = "local[2]"
config = { "spark.driver.memory" = "2g" }
"""

EVERYTHING = NewSubscription("reader", "/*", id="everything")
"""Somebody who wants every message: so each has a delivery to wait for."""

PATIENCE_S = 600.0
"""A job that gets nowhere for so long never will."""


class JobBenchError(TamisError):
    """A job that did not do what was to be measured."""


@dataclass(frozen=True)
class JobFolder:
    """What a job has: its settings, catalog, inbox and outbox."""

    path: Path

    def make(self, subscriptions: Iterable[str] = ()) -> None:
        """A catalog with these queries, beside `EVERYTHING`."""
        (self.path / "inbox").mkdir(parents=True)
        (self.path / "tamis.toml").write_text(SETTINGS)
        with Catalog(str(self.path / "tamis.db")) as catalog:
            catalog.add(EVERYTHING)
            lines = (NewSubscription("trader", query, id=f"s{n}") for n, query in enumerate(subscriptions))
            catalog.import_(enumerate(lines), unexpected)

    def publish(self, name: str, message: bytes) -> float:
        """Let a message enter; when it did."""
        draft = self.path / "inbox" / f".{name}"
        draft.write_bytes(message)
        now = time.time()
        draft.rename(self.path / "inbox" / name)
        return now

    def delivered(self) -> dict[str, float]:
        """The messages that `EVERYTHING` got, and when each could be read."""
        outbox = Outbox(self.path / "outbox")
        found: dict[str, float] = {}
        for publication in outbox.published():
            # A manifest is renamed into its place, and its inode changes then.
            manifest = self.path / "outbox" / "manifests" / f"{publication.batch}.json"
            readable = manifest.stat().st_ctime
            for rows in outbox.read(publication, subscriber=EVERYTHING.subscriber):
                found |= dict.fromkeys(map(str, rows.column("message").to_pylist()), readable)
        return found

    @property
    def batches(self) -> int:
        """How many batches with deliveries there are."""
        return sum(1 for _ in (self.path / "outbox" / "manifests").glob("*.json"))

    @contextmanager
    def running(self) -> Iterator["RunningJob"]:
        """The job, stopped afterwards."""
        with launched(self.path, "run") as process:
            yield RunningJob(self, process)
            process.terminate()
            process.wait(PATIENCE_S)


@dataclass(frozen=True)
class RunningJob:
    """A job that runs."""

    folder: JobFolder
    process: "subprocess.Popen[bytes]"

    @property
    def read(self) -> int:
        """How many messages the job has read and is done with."""
        try:
            return sum(source.totals.read for source in read_status(self.folder.path / "state").sources)
        except StatusError:
            return 0

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until it is so."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                last = (self.folder.path / LOG).read_text(errors="replace")[-2000:]
                raise JobBenchError("no-progress", f"the job got nowhere; the end of its log:\n{last}")
            time.sleep(0.02)


def unexpected(refusal: object) -> None:
    """What comes of a subscription that should not have been refused."""
    raise JobBenchError("refused", f"a generated subscription was refused: {refusal}")
