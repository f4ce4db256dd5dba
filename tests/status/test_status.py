"""The status of a job: what the board says, and what others read in its file."""

import json
import logging
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tamis.errors import StoreError
from tamis.status import BatchReport, StatusBoard, StatusError, read_status, status_json
from tamis.status.file import NAME, process_started, write_status
from tests.helpers.reports import Clock, run_batch

JOB = """
import sys
from pathlib import Path
from tamis.status import StatusBoard
StatusBoard(Path(sys.argv[1]), ["inbox"]).state("running")
print("runs", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> StatusBoard:
    return StatusBoard(tmp_path, ["inbox"], clock)


def test_totals_add_up(board: StatusBoard, clock: Clock) -> None:
    run_batch(board, clock, number=0)
    last = run_batch(board, clock, number=1, messages=10, seconds=2.5, lag={"files": 3})
    (source,) = board.now().sources
    totals = source.totals
    assert source.last == last
    assert (totals.batches, totals.read, totals.deliveries, totals.candidates) == (2, 110, 220, 330)
    assert totals.read == totals.matched + totals.unmatched + totals.dead
    assert source.durations.seconds == 3.0
    # 0.5 and 2.5 seconds: a bound belongs to the class below it.
    assert source.durations.counts == (0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0)


def test_rates_of_a_young_source_are_of_its_age(board: StatusBoard, clock: Clock) -> None:
    run_batch(board, clock, seconds=2)
    (source,) = board.now().sources
    assert (source.messages_rate, source.matches_rate) == (50, 100)


def test_rates_are_of_the_last_half_minute(board: StatusBoard, clock: Clock) -> None:
    run_batch(board, clock, seconds=1)
    clock.sleep(29)
    assert board.now().sources[0].messages_rate == pytest.approx(100 / 30, abs=0.001)
    clock.sleep(0.5)
    assert board.now().sources[0].messages_rate == pytest.approx(50 / 30, abs=0.001), "half of it is too old"
    clock.sleep(0.5)
    assert board.now().sources[0].messages_rate == 0


def test_a_long_batch_is_spread_over_the_time_it_took(board: StatusBoard, clock: Clock) -> None:
    run_batch(board, clock, seconds=300, messages=3000)
    (source,) = board.now().sources
    assert source.messages_rate == pytest.approx(10)
    assert source.minute == pytest.approx((10.0,) * 10)


def test_the_last_minute_in_slices(board: StatusBoard, clock: Clock) -> None:
    run_batch(board, clock, seconds=6, messages=60)
    clock.sleep(6)
    run_batch(board, clock, seconds=6, messages=120)
    assert board.now().sources[0].minute == (0, 0, 0, 0, 0, 0, 0, 10, 0, 20)
    clock.sleep(60)
    assert board.now().sources[0].minute == (0,) * 10


def test_a_source_runs_waits_fails_and_comes_back(board: StatusBoard, clock: Clock) -> None:
    def state() -> str:
        return board.now().sources[0].state

    board.state("running")
    assert state() == "waiting"
    board.batch_started("inbox")
    assert state() == "running"
    clock.sleep(100)
    assert state() == "running", "a batch may take its time"
    board.failed("inbox", StoreError("store-unreachable", "no room"))
    assert state() == "retrying"
    assert board.now().failing
    board.batch_started("inbox")
    assert state() == "retrying", "trying is not doing"
    run_batch(board, clock)
    assert state() == "running"
    clock.sleep(31)
    assert state() == "waiting"
    board.failed("inbox", ValueError())
    board.recovered("inbox")
    assert state() == "waiting"
    assert not board.now().failing
    board.state("stopped")
    assert state() == "stopped"


def test_failures_are_counted_and_reported_in_one_line(board: StatusBoard, clock: Clock) -> None:
    board.failed("inbox", StoreError("store-unreachable", "no room"))
    clock.sleep(1)
    board.failed("inbox", RuntimeError("it broke\n\tat org.apache.spark…"))
    board.failed("inbox", RuntimeError("x" * 5000))
    (source,) = board.now().sources
    assert source.failures == {"store-unreachable": 1, "RuntimeError": 2}
    assert source.failure is not None
    assert source.failure.reason == "x" * 300
    assert source.failure.when == clock()


def test_a_catalog_that_fails_concerns_the_job(board: StatusBoard) -> None:
    board.state("running")
    board.failed(None, StoreError("catalog-unreachable", "no answer"))
    status = board.now()
    assert status.failing
    assert status.failure is not None
    assert status.failure.code == "catalog-unreachable"
    board.generation(8, 1000)
    status = board.now()
    assert (status.generation, status.subscriptions, status.failure) == (8, 1000, None)
    assert not status.failing


def test_listeners_get_every_report(board: StatusBoard, clock: Clock) -> None:
    heard: list[BatchReport] = []
    board.on_report(heard.append)
    assert [run_batch(board, clock, number=number) for number in range(3)] == heard


def test_threads_may_report_at_once(tmp_path: Path) -> None:
    names = [f"source {number}" for number in range(4)]
    board = StatusBoard(tmp_path, names)

    def work(name: str) -> None:
        clock = Clock()
        for number in range(25):
            run_batch(board, clock, name, number=number)
            read_status(tmp_path)

    threads = [threading.Thread(target=work, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    board.state("stopped")
    assert [source.totals.batches for source in read_status(tmp_path).sources] == [25] * 4


def test_the_file_is_the_status(board: StatusBoard, clock: Clock, tmp_path: Path) -> None:
    board.state("running")
    board.generation(7, None)
    run_batch(board, clock, lag={"files": 12})
    board.failed("inbox", StoreError("store-unreachable", "no room"))
    board.failed(None, StoreError("catalog-unreachable", "no answer"))
    assert read_status(tmp_path) == board.now()
    assert json.loads(status_json(board.now())) == json.loads((tmp_path / NAME).read_text())
    assert [path.name for path in tmp_path.iterdir()] == [NAME], "no drafts are left"


def test_nothing_is_written_before_the_first_event(board: StatusBoard, tmp_path: Path) -> None:
    """The directory may be that of a job that runs already."""
    board.now()
    with pytest.raises(StatusError, match="no-job"):
        read_status(tmp_path)


def test_a_beat_renews_the_file_once_a_second(board: StatusBoard, clock: Clock, tmp_path: Path) -> None:
    board.state("running")
    then = clock()
    clock.sleep(0.5)
    board.heartbeat()
    assert read_status(tmp_path).now == then
    clock.sleep(0.5)
    board.heartbeat()
    assert read_status(tmp_path).now == clock()


def test_frequent_events_are_written_at_intervals(board: StatusBoard, clock: Clock, tmp_path: Path) -> None:
    board.state("running")
    for number in range(3):
        run_batch(board, clock, number=number, seconds=0.05)
    assert read_status(tmp_path).sources[0].totals.batches == 0
    board.heartbeat()
    assert read_status(tmp_path).sources[0].totals.batches == 0
    clock.sleep(0.1)
    board.heartbeat()
    assert read_status(tmp_path).sources[0].totals.batches == 3
    board.failed("inbox", StoreError("store-unreachable", "no room"))
    assert read_status(tmp_path).failing, "at once"


def test_a_file_that_cannot_be_written_does_not_stop_the_job(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "state"
    place.write_text("a file, where a directory should be")
    board = StatusBoard(place, ["inbox"], clock)
    with caplog.at_level(logging.WARNING):
        run_batch(board, clock)
        run_batch(board, clock)
    assert len(caplog.records) == 1, "logged once"
    assert board.now().sources[0].totals.batches == 2
    place.unlink()
    run_batch(board, clock)
    assert read_status(place).sources[0].totals.batches == 3


def test_a_job_that_was_killed_has_died(tmp_path: Path) -> None:
    command = [sys.executable, "-c", JOB, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "runs\n"
        assert read_status(tmp_path).state == "running"
        job.kill()
        os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)
        assert read_status(tmp_path).state == "died", "though its process is there until someone asks for it"
        job.wait()
        status = read_status(tmp_path)
    assert (status.state, status.alive, status.failing) == ("died", False, False)
    assert status.sources[0].state == "stopped"


def test_another_process_with_the_same_number_is_not_the_job(board: StatusBoard, tmp_path: Path) -> None:
    board.state("running")
    write_status(replace(board.now(), pid_started=1), tmp_path)
    assert read_status(tmp_path).state == "died"
    board.state("stopped")
    write_status(replace(board.now(), pid_started=1), tmp_path)
    assert read_status(tmp_path).state == "stopped", "it said so itself"


def test_when_a_process_began() -> None:
    assert process_started(os.getpid()) is not None
    assert process_started(os.getpid()) == process_started(os.getpid())
    assert process_started(2**22 + 1) is None, "beyond the largest number that Linux gives"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"job": 1', '{"started": 3}'])
def test_a_file_that_is_no_status(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(StatusError, match="bad-status"):
        read_status(tmp_path)


def test_a_lag_is_known_after_its_batch(board: StatusBoard, clock: Clock) -> None:
    board.lag("inbox", {"files": 0})
    run_batch(board, clock, number=0, lag={"files": 1})
    board.lag("inbox", {"files": 0})
    (source,) = board.now().sources
    assert source.last is not None
    assert source.last.lag == {"files": 0}


def test_a_disk_without_room_is_a_failure_of_the_job(small_disk: Path, clock: Clock) -> None:
    board = StatusBoard(small_disk, ["inbox"], clock)
    board.state("running")
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "full").write_bytes(b"x" * (1 << 20))
    board.state("running")
    status = board.now()
    assert status.failing
    assert status.failure is not None
    assert status.failure.code == "status-unwritable"
    (small_disk / "full").unlink()
    board.state("running")
    assert not board.now().failing
