"""`tamis bench data` on tiny data: the form of its output, not the figures."""

import json

import pytest

from tamis import cli

RATIOS = [
    *("warm", "first", "candidates", "more_subscriptions", "more_rows", "transformations"),
    *("build", "size", "open", "upserts", "private"),
]


def test_bench_data_ends_with_all_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--subscriptions", "300", "--rows", "2000", "--messages", "20", "--transformations", "50"]
    assert cli.main(["bench", "data", *sizes, "--rounds", "1"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [name for name in RATIOS if name not in result] == []
    assert result["candidates"] == pytest.approx(1, abs=0.5)
    assert result["size"] < 5
