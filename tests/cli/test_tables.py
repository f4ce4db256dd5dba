"""Lists: a table in a terminal, tabs in a pipe, and JSON."""

import json
from pathlib import Path

import pytest

from tamis import cli

LONG = "//item[" + " or ".join(f"@code = 'a-rather-long-code-{number}'" for number in range(9)) + "]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a catalog, and nothing in the environment that names another."""
    monkeypatch.chdir(tmp_path)
    for name in ("TAMIS_URL", "TAMIS_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["subscriptions", "add", LONG, "--subscriber", "ann", "--id", "x" * 90]) == 0
    assert cli.main(["subscriptions", "add", "//a\n//b", "--subscriber", "bob", "--id", "two"]) == 0


def test_a_pipe_gets_one_row_a_line_and_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["subscriptions", "list"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert sorted(row[1] for row in rows) == ["two", "x" * 90]
    assert {len(row) for row in rows} == {7}
    assert {row[4] for row in rows} == {LONG, "//a //b"}


def test_lists_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["subscriptions", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["query"] for row in rows} == {LONG, "//a\n//b"}
    assert "number" not in rows[0]
    assert cli.main(["tokens", "create", "--role", "admin"]) == 0
    capsys.readouterr()
    assert cli.main(["tokens", "list", "--json"]) == 0
    token = json.loads(capsys.readouterr().out)
    assert token["role"] == "admin"
    assert not {"secret", "hash"} & token.keys()


def test_a_terminal_gets_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    capsys.readouterr()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["subscriptions", "list"]) == 0
    out = capsys.readouterr().out
    assert "subscriber" in out
    assert "tenant" not in out, "an empty column is left out"
