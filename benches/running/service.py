"""`tamis serve` in a process of its own, as people run it, to be loaded and killed from outside."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benches.running.job import PATIENCE_S, SETTINGS, JobBenchError, unexpected
from tamis.catalog import Catalog
from tamis.cli.processes import LOG, free_port, launched
from tamis.client import Client, ClientError
from tamis.model.subscription import NewSubscription
from tamis.model.token import NewToken, Role
from tamis.status import StatusError, read_status

RATE = 1_000_000
"""Requests a second that its tokens may make: more than anybody does."""


@dataclass(frozen=True)
class ServiceFolder:
    """What a service has: its settings, catalog, inbox and outbox; and who may use it."""

    path: Path
    port: int
    admin: str
    publisher: str
    subscribers: Sequence[tuple[str, str]]
    """Their names and tokens."""

    @classmethod
    def make(cls, path: Path, queries: Sequence[str], subscribers: int) -> "ServiceFolder":
        """A catalog with these queries as `s1`, `s2` and so on, the subscribers in turns."""
        path.mkdir(parents=True)
        port = free_port()
        (path / "tamis.toml").write_text(f"{SETTINGS}\n[serve]\nport = {port}\n")
        names = [f"trader {number}" for number in range(1, subscribers + 1)]
        with Catalog(str(path / "tamis.db")) as catalog:
            lines = (
                NewSubscription(names[line % subscribers], query, id=f"s{line}")
                for line, query in enumerate(queries, 1)
            )
            catalog.import_(enumerate(lines, 1), unexpected)

            def token(role: Role, subscriber: str | None = None) -> str:
                return catalog.tokens.create(NewToken("bench", role, "", subscriber, RATE))[1]

            holders = [(name, token(Role.SUBSCRIBER, name)) for name in names]
            return cls(path, port, token(Role.ADMIN), token(Role.PUBLISHER), holders)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator["RunningService"]:
        """The service when its job runs, stopped afterwards."""
        with launched(self.path, "serve") as process, Client(self.url, self.admin) as client:
            service = RunningService(self, process, client)
            try:
                service.wait_for_its_job()
                yield service
                if process.poll() is None:
                    process.terminate()
                    process.wait(PATIENCE_S)
            finally:
                service.kill()


@dataclass(frozen=True)
class RunningService:
    """A service that runs."""

    folder: ServiceFolder
    process: "subprocess.Popen[bytes]"
    client: Client

    def wait_for_its_job(self) -> None:
        """Until messages are read."""
        end = time.monotonic() + PATIENCE_S
        while not self._job_runs():
            if self.process.poll() is not None or time.monotonic() > end:
                last = (self.folder.path / LOG).read_text(errors="replace")[-2000:]
                raise JobBenchError("no-progress", f"the service got nowhere; the end of its log:\n{last}")
            time.sleep(0.05)

    def kill(self) -> None:
        """The service and its job, all of their processes, at once."""
        if self.process.poll() is None:
            job = self._job_process()
            os.killpg(self.process.pid, signal.SIGKILL)
            if job is not None:
                with suppress(ProcessLookupError):
                    os.killpg(job, signal.SIGKILL)
            self.process.wait()

    def _job_runs(self) -> bool:
        try:
            status = read_status(self.folder.path / "state")
        except StatusError:
            return False
        # Not the one before, which was killed and could not say so.
        return status.state == "running" and status.pid == self._job_process()

    def _job_process(self) -> int | None:
        try:
            found: int | None = self.client.status()["process"]["pid"]
        except ClientError:
            return None
        return found
