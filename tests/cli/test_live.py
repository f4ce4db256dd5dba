"""A job's status in a terminal."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tamis.cli.live import batch_line, compact, display, render, sparkline
from tamis.errors import StoreError
from tamis.status import Status, StatusBoard
from tests.helpers.reports import Clock, run_batch

TABLE = """\
tamis {version}  ● running  generation 7 · 1,000,000 subscriptions · up 0:00:59
               messages matches candid.
  source             /s      /s : match  batch  lag gen.  dead errors minute
────────────────────────────────────────────────────────────────────────────────
● inbox           1.33k   2.67k    1.50 2.50 s   12    7 5.20k      0 ▁  ▃    ▁█
▲ kafka-orders      200     400    1.50 0.50 s 123k    7    10      2          █
○ a-source-wi…        0       0       –      –    –    –     0      0
▲ job: catalog-unreachable: no answer (0 s ago)
▲ kafka-orders: store-unreachable: no room (0 s ago)
"""

LINE = (
    "2026-03-01T12:00:00Z inbox batch 4: 100 read = 60 matched + 30 unmatched + 10 dead, "
    "200 deliveries, 300 candidates, 0.50 s, generation 7, files behind: 12"
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> StatusBoard:
    return StatusBoard(tmp_path, ["inbox", "kafka-orders", "a-source-with-a-long-name"], clock)


@pytest.fixture
def status(board: StatusBoard, clock: Clock) -> Status:
    """A job that has seen a minute of everything."""
    board.state("running")
    board.generation(7, 1_000_000)
    run_batch(board, clock, messages=1_000, seconds=1)
    clock.sleep(18)
    run_batch(board, clock, messages=11_000, seconds=2)
    clock.sleep(30)
    run_batch(board, clock, messages=10_000, seconds=5)
    run_batch(board, clock, messages=30_000, seconds=2.5, lag={"files": 12})
    run_batch(board, clock, "kafka-orders", lag={"messages": 123_456})
    for _ in range(2):
        board.failed("kafka-orders", StoreError("store-unreachable", "no room"))
    board.failed(None, StoreError("catalog-unreachable", "no answer"))
    return board.now()


def shown(status: Status, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(render(status))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def test_the_table_fits_into_80_columns(status: Status) -> None:
    assert shown(status, 80) == TABLE.format(version=status.version)


def test_a_wide_terminal_has_room_for_names(status: Status) -> None:
    assert "○ a-source-with-a-long-name " in shown(status, 120)


def test_a_job_that_has_done_nothing_yet(tmp_path: Path, clock: Clock) -> None:
    text = shown(StatusBoard(tmp_path, ["inbox"], clock).now(), 80)
    assert "○ starting  no generation yet · up 0:00:00" in text


def test_names_and_reasons_are_no_markup(tmp_path: Path, clock: Clock) -> None:
    board = StatusBoard(tmp_path, ["[red]"], clock)
    board.failed("[red]", StoreError("no-match", "/a[b] [bold]x"))
    text = shown(board.now(), 80)
    assert "▲ [red] " in text
    assert "▲ [red]: no-match: /a[b] [bold]x (0 s ago)" in text


def test_a_terminal_gets_the_table_and_keeps_the_last(board: StatusBoard, clock: Clock) -> None:
    output = io.StringIO()
    with display(board, Console(file=output, force_terminal=True, width=80)):
        run_batch(board, clock)
        board.state("stopped")
    last = output.getvalue().rpartition("tamis ")[2]
    assert "■ stopped" in last
    assert "1.50 0.50 s" in last


def test_others_get_a_line_for_each_batch_that_had_messages(board: StatusBoard, clock: Clock) -> None:
    output = io.StringIO()
    with display(board, Console(file=output, width=80)):
        run_batch(board, clock, number=3, seconds=0, messages=0)
        report = run_batch(board, clock, number=4, lag={"files": 12})
    assert batch_line(report) == LINE
    assert output.getvalue() == f"{LINE}\n"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (3, "3"), (0.1234, "0.12"), (9.994, "9.99"), (9.996, "10.0"), (42.25, "42.2"),
        (99.96, "100"), (999, "999"), (999.4, "999"), (999.6, "1.00k"), (1000, "1k"), (12_345, "12.3k"),
        (999_400, "999k"), (999_600, "1.00M"), (5_000_000, "5M"), (2.5e9, "2.50G"),
    ],
)  # fmt: skip
def test_compact_numbers(number: float, text: str) -> None:
    assert compact(number) == text


def test_sparklines() -> None:
    assert sparkline([0, 1, 4, 8]) == " ▁▄█"
    assert sparkline([0, 0.001, 1000]) == " ▁█", "little is not nothing"
    assert sparkline([0, 0]) == "  "
