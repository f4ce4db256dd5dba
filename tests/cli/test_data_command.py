"""The command `tamis data`: add, list, show, update, revert, remove, and bad input."""

import json
import sqlite3
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.cli.commands import main
from tamis.model.subscription import NewSubscription

QUERY = "//trade[@symbol = collection('watch')/row/symbol]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("TAMIS_CATALOG", "TAMIS_STORE", "TAMIS_STATE", "TAMIS_URL"):
        monkeypatch.delenv(name, raising=False)
    Path("watch.csv").write_text("symbol,owner\nIBM,ada\nSAP,bob\n")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints, or its error."""
    assert main(["data", *arguments]) == code, capsys.readouterr()
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def shown(capsys: pytest.CaptureFixture[str], name: str = "watch") -> dict[str, object]:
    value: dict[str, object] = json.loads(run(capsys, "show", name))
    return value


def test_the_life_of_a_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "add", "watch", "watch.csv", "--key", "/row/symbol").startswith(
        "watch version 1: 2 records"
    )
    Path("more.csv").write_text("symbol,owner\nSAP,eve\nHPQ,eve\n")
    printed = run(capsys, "update", "watch", "more.csv", "--upsert", "--delete", "IBM")
    assert printed.startswith("watch version 2: 2 records")
    value = shown(capsys)
    assert value["preview"] == [
        "<row><symbol>SAP</symbol><owner>eve</owner></row>",
        "<row><symbol>HPQ</symbol><owner>eve</owner></row>",
    ]
    assert [one["number"] for one in value["versions"]] == [2, 1]  # type: ignore[attr-defined]
    assert run(capsys, "revert", "watch").startswith("watch version 1")
    assert run(capsys, "revert", "watch", "--version", "2").startswith("watch version 2")
    assert run(capsys, "update", "watch", "watch.csv").startswith("watch version 3: 2 records")
    (line,) = run(capsys, "list", "--json").splitlines()
    listed = json.loads(line)
    assert (listed["name"], listed["key"], listed["current"]["number"]) == ("watch", "/row/symbol", 3)
    assert run(capsys, "list").split("\t")[1:4] == ["watch", "3", "2"]
    with Catalog("tamis.db") as catalog:
        catalog.add(NewSubscription("ann", QUERY, "x"))
        assert shown(capsys)["subscriptions"] == ["x"]
        assert "data-in-use: subscriptions name watch: x" in run(capsys, "remove", "watch", code=1)
        catalog.remove("x")
    run(capsys, "remove", "watch")
    assert "there is no local data watch" in run(capsys, "remove", "watch", code=1)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad.csv", "symbol,owner\nIBM\n", "bad.csv: row 1 has 1 fields"),
        ("bad.csv", "symbol,a b\nIBM,x\n", "the column 'a b' is no name"),
        ("bad.csv", "symbol,owner\nIBM,a\nIBM,b\n", "records 1 and 2 have the key"),
        ("bad.xml", "<rows><row><symbol>A</symbol></row><row>", "record 2"),
        ("none.csv", None, "none.csv cannot be read"),
    ],
)
def test_what_is_malformed_tells_the_place_and_the_old_version_stays(
    capsys: pytest.CaptureFixture[str], name: str, text: str | None, said: str
) -> None:
    run(capsys, "add", "watch", "watch.csv", "--key", "/row/symbol")
    if text is not None:
        Path(name).write_text(text)
    more = ["--record", "row"] if name.endswith("xml") else []
    for upsert in ([], ["--upsert"]):
        assert said in run(capsys, "update", "watch", name, *upsert, *more, code=1)
    assert "data set" not in run(capsys, "add", "other", name, "--key", "/row/symbol", *more, code=1)
    assert run(capsys, "list").count("\n") == 1
    current = shown(capsys)["current"]
    assert isinstance(current, dict)
    assert current["number"] == 1
    assert not list(Path("state/data").iterdir())


def test_records_from_other_sources(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder").mkdir()
    for name in "ab":
        Path("folder", f"{name}.xml").write_text(f"<site id='{name}'/>")
    Path("book.xml").write_text("<book><site id='7'/><site id='8'/></book>")
    with sqlite3.connect("some.db") as database:
        database.execute("create table site (id int, city text)")
        database.executemany("insert into site values (?, ?)", [(1, "Oslo"), (2, None)])
    monkeypatch.setenv("SITES", "some")
    for name, arguments, preview in (
        ("folder", ["folder"], ["<site id='a'/>", "<site id='b'/>"]),
        ("book", ["book.xml", "--record", "site"], ["<site id='7'/>", "<site id='8'/>"]),
        (
            "sql",
            ["--sql", "sqlite:///${SITES}.db", "--query", "select * from site order by id"],
            ["<row><id>1</id><city>Oslo</city></row>", "<row><id>2</id></row>"],
        ),
    ):
        run(capsys, "add", name, *arguments)
        assert shown(capsys, name)["preview"] == preview
    assert "no-source" in run(capsys, "add", "none", code=1)
    assert "two-sources" in run(capsys, "add", "none", "--sql", "x", code=1)
    assert "no-key" in run(capsys, "update", "book", "--delete", "7", code=1)
    assert "two-updates" in run(capsys, "update", "book", "book.xml", "--delete", "7", code=1)


def test_tenants_and_shared_sets(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", "watch", "watch.csv", "--tenant", "a")
    run(capsys, "add", "rates", "watch.csv", "--shared")
    assert "unknown-data" in run(capsys, "show", "watch", code=1)
    assert "unknown-data" in run(capsys, "update", "watch", "watch.csv", "--tenant", "b", code=1)
    assert "data-exists" in run(capsys, "add", "rates", "watch.csv", "--tenant", "a", code=1)
    assert [line.split("\t")[:2] for line in run(capsys, "list").splitlines()] == [
        ["(all)", "rates"],
        ["a", "watch"],
    ]
    assert [line.split("\t")[1] for line in run(capsys, "list", "--tenant", "b").splitlines()] == ["rates"]
