"""`tamis status`, by its contract."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis import cli
from tamis.errors import StoreError
from tamis.status import StatusBoard, status_json
from tests.helpers.reports import Clock, run_batch


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's state directory, and nothing in the environment or the working directory that names another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAMIS_STATE", raising=False)
    return tmp_path / "state"


@pytest.fixture
def board(state: Path) -> StatusBoard:
    board = StatusBoard(state, ["inbox"], Clock())
    board.state("running")
    return board


def watching(state: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tamis.cli", "status", "--state", str(state), "--watch", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_the_exit_code_tells_how_the_job_does(board: StatusBoard, state: Path) -> None:
    command = ["status", "--state", str(state)]
    assert cli.main(command) == 0
    board.failed("inbox", StoreError("store-unreachable", "no room"))
    assert cli.main(command) == 4
    board.state("stopped")
    assert cli.main(command) == 3


def test_no_job_at_all(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--state", str(state)]) == 3
    assert "no-job" in capsys.readouterr().err


def test_a_pipe_gets_tabs(board: StatusBoard, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board.failed("inbox", StoreError("store-unreachable", "a long reason, " * 20))
    assert cli.main(["status", "--state", str(state)]) == 4
    job, source, error = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert job[:2] == ["job", "running"]
    assert source[:3] == ["source", "inbox", "retrying"]
    assert source[-1] == "1"
    assert error == ["error", "inbox", "store-unreachable", "a long reason, " * 20]


def test_json_is_the_status(board: StatusBoard, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_batch(board, Clock())
    board.state("running")
    assert cli.main(["status", "--state", str(state), "--json"]) == 0
    assert capsys.readouterr().out == f"{status_json(board.now(), indent=2)}\n"


def test_the_settings_say_where_the_state_is(
    board: StatusBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["status"]) == 0, "the default"
    (tmp_path / "tamis.toml").write_text('state = "elsewhere"\n')
    assert cli.main(["status"]) == 3
    monkeypatch.setenv("TAMIS_STATE", str(tmp_path / "state"))
    assert cli.main(["status"]) == 0
    monkeypatch.delenv("TAMIS_STATE")
    (tmp_path / "other.toml").write_text('state = "state"\n')
    assert cli.main(["status", "--config", "other.toml"]) == 0


def test_watching_ends_when_the_job_ends(board: StatusBoard, state: Path) -> None:
    clock = Clock()
    with watching(state, "--json") as watcher:
        assert watcher.stdout is not None
        assert json.loads(watcher.stdout.readline())["state"] == "running"
        run_batch(board, clock)
        board.state("running")
        assert json.loads(watcher.stdout.readline())["sources"][0]["totals"]["read"] == 100
        board.state("stopped")
        assert json.loads(watcher.stdout.read())["state"] == "stopped"
        assert watcher.wait() == 3


def test_watching_waits_for_a_job_that_starts(board: StatusBoard, state: Path) -> None:
    """The file may still be that of the last run."""
    board.state("stopped")
    with watching(state, "--json") as watcher:
        time.sleep(0.5)
        board.state("starting")
        assert watcher.stdout is not None
        assert json.loads(watcher.stdout.readline())["state"] == "starting"
        board.state("stopped")
        assert watcher.wait() == 3


def test_a_status_that_is_no_longer_written(
    board: StatusBoard, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk: the job runs, but its status is old."""
    os.utime(state / "status.json", (0, 0))
    assert cli.main(["status", "--state", str(state)]) == 4
    assert "status-stale" in capsys.readouterr().out


def test_the_last_table_stays(board: StatusBoard, state: Path) -> None:
    with watching(state) as watcher:
        board.state("stopped")
        assert watcher.stdout is not None
        assert "■ stopped" in watcher.stdout.read()
        assert watcher.wait() == 3
