"""The job, looked after: started, started again when it dies, stopped cleanly."""

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

log = logging.getLogger(__name__)
job_log = logging.getLogger("tamis.job")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a job that died is started again; each time twice as many."""

SOUND = 60.0
"""A job that ran so many seconds was well: the next pause is a short one."""

GRACE = 120.0
"""Seconds that a running batch gets to finish."""


@dataclass(frozen=True, slots=True)
class Process:
    """The process of the job."""

    pid: int | None = None
    """None while it does not run."""
    starts: int = 0
    last_exit: int | None = None
    """The exit code of the one before; a signal's number, negative, if it was killed."""


class Supervisor:
    """Runs a command, and runs it again."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._stopping = threading.Event()
        self._changing = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The kernel tells a child that its parent is gone when the thread ends that started it: this one.
        self._thread = threading.Thread(target=self._run, name="supervisor")
        self.state = Process()

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the job when its running batch is done; at once if that takes too long."""
        self._stopping.set()
        with self._changing:
            if self._process is not None:
                self._process.terminate()
        self._thread.join(GRACE)
        if self._thread.is_alive():
            log.error("the job does not stop; it is killed, and the next one does what is left")
            with self._changing:
                if self._process is not None:
                    _kill(self._process)
            self._thread.join()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self._once()
            if self._stopping.is_set():
                return
            if time.monotonic() - started >= SOUND:
                pause = FIRST_PAUSE
            log.error("the job ended with %s; it is started again in %.0f s", code, pause)
            self._stopping.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _once(self) -> int:
        """Start the job and wait for its end; its exit code."""
        with self._changing:
            # In a session of its own: a Ctrl-C on the terminal is for us, and we tell it.
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
        # Its JVM may not have noticed yet, and would hold what the next one needs.
        _kill(process)
        relay.join()
        process.stdout.close()
        return code


def _relay(output: IO[bytes]) -> None:
    """What the job says becomes part of our log."""
    for line in output:
        if text := line.decode("utf-8", "replace").rstrip():
            job_log.info("%s", text)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """The process, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
