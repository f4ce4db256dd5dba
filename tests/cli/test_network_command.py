"""`tamis network status`, by what it prints and how it ends."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tamis import cli
from tamis.catalog import Catalog
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.network.tables import EMPTY, TableVersion, changed_hash
from tamis.settings import load_settings
from tamis.status import LinkReport, StatusBoard, read_status
from tests.helpers.reports import Clock

Captured = pytest.CaptureFixture[str]

ROUTED = LinkReport(
    "a.b",
    "b",
    "up",
    routed=True,
    routes=3,
    agreed=True,
    offered=10,
    messages=4,
    bytes=999,
    received=2,
    in_vain=1,
)
DOWN = LinkReport("a.c", "c", "stopped", "damaged-parcel", "parcel 7 is not what was sent", waiting=5)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAMIS_STATE", raising=False)
    return tmp_path / "state"


@pytest.fixture
def board(state: Path) -> StatusBoard:
    board = StatusBoard(state, ["network"], Clock())
    board.state("running")
    return board


def run(state: Path, *arguments: str) -> int:
    return cli.main(["network", "status", "--state", str(state), *arguments])


def report(board: StatusBoard, *links: LinkReport) -> None:
    board.links(links)
    board.state("running")


def test_each_link_is_a_row(board: StatusBoard, state: Path, capsys: Captured) -> None:
    report(board, ROUTED, DOWN)
    assert run(state) == 4
    one, other = capsys.readouterr().out.splitlines()
    assert one.split("\t") == ["a.b", "b", "up", "what is wanted", "4", "10", "999", "2", "1", "0", "3", ""]
    assert other.split("\t")[:4] == ["a.c", "c", "stopped", "everything"]
    assert other.split("\t")[9:] == ["5", "0", "damaged-parcel: parcel 7 is not what was sent"]
    assert run(state, "--json") == 4
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown == [asdict(ROUTED), asdict(DOWN)]
    assert read_status(state).links == (ROUTED, DOWN)


def test_the_exit_code_tells_how_the_links_do(board: StatusBoard, state: Path, capsys: Captured) -> None:
    report(board, ROUTED, replace(ROUTED, link="a.d", agreed=False))
    assert run(state) == 0
    assert "not in force there yet" in capsys.readouterr().out.splitlines()[1]
    board.state("stopped")
    assert run(state) == 3


def test_no_job_and_no_network(state: Path, capsys: Captured) -> None:
    assert run(state) == 3
    assert "no-job" in capsys.readouterr().err
    StatusBoard(state, ["inbox"], Clock()).state("running")
    assert run(state) == 0
    assert "no broker" in capsys.readouterr().err


def test_why_a_message_crosses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(tmp_path)
    names = "".join(f"[[broker]]\nname = '{one}'\n" for one in "abcd")
    links = "".join(f"[[link]]\nends = ['a', '{one}']\npath = '{one}'\n" for one in "bc")
    barred = "[[link]]\nends = ['a', 'd']\npath = 'd'\ntenants = ['t']\n"
    Path("network.toml").write_text(names + links + barred)
    Path("tamis.toml").write_text("[broker]\nname = 'a'\n")
    Path("m.xml").write_text("<m><k/></m>")
    assert cli.main(["network", "explain", "m.xml"]) == 0
    before = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[1], row[2]) for row in before] == [("b", "crosses"), ("c", "crosses"), ("d", "stays")]
    assert "is sent everything" in before[0][3]
    settings = load_settings(Path("tamis.toml"), environment={})
    with Catalog(settings.catalog) as catalog:
        for link, row in (("a.b", ("", "//k")), ("a.c", ("", "//other"))):
            table = TableVersion(1, "mark", changed_hash(EMPTY, [row], ()))
            catalog.routes.replace(link, table, [row])
        with Publisher(catalog, Store(settings.generations), settings.state / "index") as publisher:
            publisher.refresh()
    board = StatusBoard(settings.state, ["network"], Clock())
    board.links([replace(ROUTED, link=link, neighbour=link[-1]) for link in ("a.b", "a.c")])
    board.state("running")
    assert cli.main(["network", "explain", "m.xml"]) == 0
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [
        ["a.b", "b", "crosses", "it satisfies //k"],
        ["a.c", "c", "stays", "it satisfies none of 3 rows that the neighbour wants"],
        ["a.d", "d", "stays", "the link is not for tenant ''"],
    ]
    assert cli.main(["network", "explain", "m.xml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["crosses"] is True
    Path("m.xml").write_text("<m>")
    assert cli.main(["network", "explain", "m.xml"]) == 1
    Path("tamis.toml").write_text("")
    assert cli.main(["network", "explain", "m.xml"]) == 1
    assert "no broker" in capsys.readouterr().err
