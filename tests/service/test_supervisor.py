"""The supervisor, with small commands in place of the job."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.service.background import supervisor
from tamis.service.background.supervisor import Supervisor
from tests.helpers.waiting import until

WAITING = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('here', flush=True); "
)
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); "
PAUSE = "signal.pause()"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_dead_process_is_restarted_and_a_running_one_is_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    caplog.set_level(logging.INFO)
    watched = Supervisor([sys.executable, "-c", WAITING + PAUSE])
    watched.start()
    try:
        until(lambda: caplog.text.count("here") == 1, "the process")
        assert (watched.state.starts, watched.state.last_exit) == (1, None)
        os.kill(watched.state.pid or 0, signal.SIGKILL)
        until(lambda: caplog.text.count("here") == 2, "the next one")
        assert "ended with exit code -9" in caplog.text
        pid = watched.state.pid
        assert pid is not None
    finally:
        watched.stop()
    assert (watched.state.pid, watched.state.starts, watched.state.last_exit) == (None, 2, 0)
    assert not alive(pid)


def test_a_process_that_does_not_stop_is_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "GRACE", 0.1)
    caplog.set_level(logging.INFO)
    watched = Supervisor([sys.executable, "-c", STUBBORN + PAUSE])
    watched.start()
    until(lambda: "here" in caplog.text, "the process")
    watched.stop()
    assert watched.state.last_exit == -9


def test_a_child_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    """The service is killed hard; what it started gets a signal."""
    note = tmp_path / "pid"
    job = f"import os, pathlib; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); {WAITING}{PAUSE}"
    child = (
        "import sys; from tamis.cli import child; "
        f"child.cli_main = lambda arguments: exec({job!r}); sys.exit(child.main())"
    )
    parent = (
        "import os, sys; from tamis.service.background.supervisor import Supervisor; "
        f"Supervisor([sys.executable, '-c', {child!r}, str(os.getpid()), 'run']).start()"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], start_new_session=True)
    try:
        pid = int(until(lambda: note.read_text() if note.exists() else "", "the child"))
    finally:
        process.kill()
        process.wait()
    until(lambda: not alive(pid), "the end of the child")
