"""Runs the job as a child process: starts it, restarts it with backoff when it dies, stops it cleanly."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO

from tamis.model.backoff import Backoff

log = logging.getLogger(__name__)
job_log = logging.getLogger("tamis.job")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a restart."""

HEALTHY_SECONDS = 60.0
"""A job that ran for this many seconds was healthy: the backoff starts again."""

GRACE = 120.0
"""Seconds that a running batch gets to finish before the job is killed."""


@dataclass(frozen=True, slots=True)
class Process:
    """The process of the job."""

    pid: int | None = None
    """None while it does not run."""
    starts: int = 0
    last_exit: int | None = None
    """The exit code of the previous process; negative: the number of the signal that killed it."""


class Supervisor:
    """Runs a command, and restarts it when it ends."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._stopping = threading.Event()
        self._changing = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The child gets its death signal when the thread that started it ends, so this thread stays.
        self._thread = threading.Thread(target=self._run, name="supervisor")
        self.state = Process()

    def start(self) -> None:
        """Start the thread that runs the command."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the job to stop after its running batch; kill it if that takes too long."""
        self._stopping.set()
        with self._changing:
            if self._process is not None:
                self._process.terminate()
        self._thread.join(GRACE)
        if self._thread.is_alive():
            log.error(
                "the job did not stop within %.0f s and is killed; the next one repeats its last batch", GRACE
            )
            with self._changing:
                if self._process is not None:
                    _kill(self._process)
            self._thread.join()

    def _run(self) -> None:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self._run_once()
            if self._stopping.is_set():
                return
            if time.monotonic() - started >= HEALTHY_SECONDS:
                backoff.reset()
            pause = backoff.next()
            log.error("the job ended with exit code %s; it is restarted in %.0f s", code, pause)
            self._stopping.wait(pause)

    def _run_once(self) -> int:
        """Run the job once; its exit code."""
        with self._changing:
            # In its own session: only we get the Ctrl-C of a terminal, and pass it on.
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._process = process
            self.state = replace(self.state, pid=process.pid, starts=self.state.starts + 1)
            if self._stopping.is_set():
                process.terminate()
        assert process.stdout is not None
        relay = threading.Thread(target=_relay, args=(process.stdout,), name="job-log")
        relay.start()
        code = process.wait()
        with self._changing:
            self._process = None
            self.state = replace(self.state, pid=None, last_exit=code)
        # Its JVM may still run, and hold locks and ports that the next job needs.
        _kill(process)
        relay.join()
        process.stdout.close()
        return code


def _relay(output: IO[bytes]) -> None:
    """Copy the output of the job to our log."""
    for line in output:
        if text := line.decode("utf-8", "replace").rstrip():
            job_log.info("%s", text)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and all of its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
