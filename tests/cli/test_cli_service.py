"""The commands on a service: the same arguments, values and exit codes as on a local catalog."""

import io
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tamis import cli
from tamis.model.token import Role
from tamis.status import BatchReport, StatusBoard
from tests.helpers.delivery_rows import delivery
from tests.helpers.served import Served, serving, settings_in
from tests.service.test_service_letters import letter, write_letters

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with serving(settings_in(tmp_path)) as served:
        monkeypatch.setenv("TAMIS_URL", served.url)
        monkeypatch.setenv("TAMIS_TOKEN", served.secret(Role.ADMIN))
        yield served
    # There is no local catalog.
    assert not Path("tamis.db").exists()


def printed_by(capsys: Captured, *arguments: str, code: int = 0) -> str:
    """Run a command; returns its output."""
    assert cli.main(list(arguments)) == code
    return capsys.readouterr().out


def test_data(served: Served, capsys: Captured) -> None:
    Path("watch.csv").write_text("symbol,owner\nIBM,ada\nSAP,bob\n")
    Path("more.xml").write_text("<all><row><symbol>HPQ</symbol></row></all>")
    own = ["--catalog", served.settings.catalog, "--store", served.settings.generations]
    printed = printed_by(capsys, "data", "add", "watch", "watch.csv", "--key", "/row/symbol")
    assert printed.startswith("watch version 1: 2 records")
    changed = ["data", "update", "watch", "more.xml", "--record", "row", "--upsert", "--delete", "IBM"]
    assert printed_by(capsys, *changed).startswith("watch version 2: 2 records")
    # A catalog of one's own shows the same.
    for command in (["show", "watch"], ["list", "--json"]):
        assert printed_by(capsys, "data", *command) == printed_by(capsys, "data", *command, *own)
    assert printed_by(capsys, "data", "revert", "watch").startswith("watch version 1")
    assert printed_by(capsys, "data", "update", "watch", "watch.csv").startswith("watch version 1")
    printed_by(capsys, "data", "remove", "watch")
    for refused in (
        ["remove", "watch"],
        ["update", "watch", "watch.csv"],
        ["add", "x", "watch.csv", "--shared"],
    ):
        assert cli.main(["data", *refused]) == 1
    assert "unknown-data" in capsys.readouterr().err


def test_subscriptions(served: Served, capsys: Captured) -> None:
    Path("prefixes.toml").write_text('p = "urn:x"\n')
    named = ["--subscriber", "ann", "--id", "s1", "--namespaces", "prefixes.toml"]
    assert printed_by(capsys, "subscriptions", "add", "//p:a", *named) == "s1\n"
    assert printed_by(capsys, "subscriptions", "change", "s1", "--query", "//p:b") == "s1 revision 2\n"
    printed_by(capsys, "subscriptions", "pause", "s1")
    shown = json.loads(printed_by(capsys, "subscriptions", "show", "s1"))
    assert (shown["query"], shown["state"], shown["namespaces"]) == ("//p:b", "paused", {"p": "urn:x"})
    # A catalog of one's own shows the same.
    own = ["--catalog", served.settings.catalog]
    assert json.loads(printed_by(capsys, "subscriptions", "show", "s1", *own)) == shown
    table = printed_by(capsys, "subscriptions", "list")
    assert table == printed_by(capsys, "subscriptions", "list", *own)
    printed_by(capsys, "subscriptions", "resume", "s1")
    exported = printed_by(capsys, "subscriptions", "export")
    assert exported == printed_by(capsys, "subscriptions", "export", *own)
    printed_by(capsys, "subscriptions", "remove", "s1")
    assert cli.main(["subscriptions", "remove", "s1"]) == 1
    assert "there is no subscription s1" in capsys.readouterr().err
    Path("lines.jsonl").write_text(f'{exported}{{"subscriber": "bob", "query": "//a["}}\nno\n')
    assert cli.main(["subscriptions", "import", "lines.jsonl", "--strict"]) == 2
    out, err = capsys.readouterr()
    assert out == "1 added, 0 changed, 0 unchanged, 2 refused\n"
    assert [line.partition(": ")[0] for line in err.splitlines()] == ["lines.jsonl:2", "lines.jsonl:3"]


def test_a_refused_query_is_marked(served: Served, capsys: Captured) -> None:
    assert cli.main(["subscriptions", "add", "//a[", "--subscriber", "ann"]) == 1
    assert "    ^" in capsys.readouterr().err
    assert cli.main(["subscriptions", "list", "--tenant", "other"]) == 1
    assert "other-tenant" in capsys.readouterr().err


def test_publish_and_receive(
    served: Served, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one.xml", "two.xml"):
        Path(name).write_text("<a/>")
    assert printed_by(capsys, "publish", "one.xml", "two.xml").split() == ["one.xml", "two.xml"]
    assert printed_by(capsys, "publish", "one.xml", "--id", "m1", "--source", "inbox") == "m1\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<b/>")))
    assert len(printed_by(capsys, "publish", "-")) == 33
    assert served.service.inboxes.waiting(served.settings.sources[0]) == 4  # type: ignore[arg-type]
    assert cli.main(["publish", "one.xml", "two.xml", "--id", "m1"]) == 2
    rows = [delivery(n, "ann", payload=b"\xff" if n == 2 else b"<a/>") for n in range(3)]
    served.catalog.mailbox.store("c-0.json", rows)
    ann = ["receive", "--subscriber", "ann"]
    capsys.readouterr()
    assert printed_by(capsys, *ann, "--limit", "1") == "m0\ts0\n<a/>\n"
    lines = printed_by(capsys, *ann, "--json", "--acknowledge", "--follow", "--limit", "3").splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["m0", "m1", "m2"]
    assert json.loads(lines[2])["base64"] == "/w=="
    assert printed_by(capsys, *ann) == ""


def test_dead_letters(served: Served, capsys: Captured, tmp_path: Path) -> None:
    write_letters(tmp_path, 0, [letter("m1")])
    (row,) = map(json.loads, printed_by(capsys, "dead-letters", "list", "--json").splitlines())
    own = ["--dead-letters", served.settings.dead_letters]
    (local,) = map(json.loads, printed_by(capsys, "dead-letters", "list", "--json", *own).splitlines())
    assert datetime.fromisoformat(row.pop("received")) == datetime.fromisoformat(local["received"])
    assert row.items() <= local.items()
    assert printed_by(capsys, "dead-letters", "list") == printed_by(capsys, "dead-letters", "list", *own)
    assert printed_by(capsys, "dead-letters", "show", row["letter"], "--raw") == printed_by(
        capsys, "dead-letters", "show", row["letter"], "--raw", *own
    )
    assert row["reason"] in printed_by(capsys, "dead-letters", "show", row["id"])
    assert printed_by(capsys, "dead-letters", "list", "--json", "--since", "2100-01-01") == ""
    assert cli.main(["dead-letters", "replay", "--all", "--to", "inbox"]) == 1
    assert printed_by(capsys, "dead-letters", "replay", "--all") == "1 replayed, 0 not\n"
    assert cli.main(["dead-letters", "show", "nobody"]) == 1


def test_status(served: Served, capsys: Captured) -> None:
    assert cli.main(["status"]) == 3
    board = StatusBoard(served.settings.state, ["inbox", "others"])
    board.state("running")
    board.report(BatchReport("inbox", 0, 1, 3, 2, 1, 0, 2, 2, datetime.now(UTC), 0.5))
    status = json.loads(printed_by(capsys, "status", "--json"))
    own = json.loads(printed_by(capsys, "status", "--json", "--state", str(served.settings.state)))
    assert status["state"] == own["state"] == "running"
    assert status["sources"] == own["sources"]
    assert "inbox" in printed_by(capsys, "status")


def test_missing_url_and_token_are_reported(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAMIS_URL", raising=False)
    monkeypatch.delenv("TAMIS_TOKEN", raising=False)
    assert cli.main(["receive"]) == 1
    assert "no-url" in capsys.readouterr().err
    assert cli.main(["receive", "--url", "http://127.0.0.1:1"]) == 1
    assert "no-token" in capsys.readouterr().err
