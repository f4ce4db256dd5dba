"""`tamis subscriptions`, by what it prints and how it ends."""

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tamis import cli
from tamis.catalog import Catalog
from tests.helpers.waiting import until

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with no catalog yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAMIS_CATALOG", raising=False)
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(["subscriptions", *arguments])


def shown(capsys: Captured, id: str, *arguments: str) -> dict[str, object]:
    assert run("show", id, *arguments) == 0
    value: dict[str, object] = json.loads(capsys.readouterr().out)
    return value


def test_add_prints_the_id_and_show_the_rest(folder: Path, capsys: Captured) -> None:
    Path("p.toml").write_text('p = "urn:x"')
    assert run("add", "//p:a", "--subscriber", "bob", "--namespaces", "p.toml") == 0
    id = capsys.readouterr().out.strip()
    value = shown(capsys, id)
    assert (value["revision"], value["namespaces"], value["delivery_target"]) == (1, {"p": "urn:x"}, "outbox")
    assert Path("tamis.db").exists()


def test_a_refused_query_is_marked(capsys: Captured) -> None:
    assert run("add", "a[b AND c]", "--subscriber", "bob") == 1
    out, err = capsys.readouterr()
    first, query, mark = err.splitlines()
    assert out == ""
    assert first.startswith("1:5: syntax: ")
    assert query[mark.index("^")] == "A"


def test_change_pause_resume_remove(capsys: Captured) -> None:
    run("add", "//a", "--subscriber", "bob", "--id", "x", "--tenant", "t")
    assert run("change", "x", "--tenant", "t", "--query", "//b", "--delivery-target", "console") == 0
    out, err = capsys.readouterr()
    assert out == "x\nx revision 2\n"
    assert "no [[sink]] of these settings has the delivery target console" in err
    assert run("change", "x", "--tenant", "t", "--query", "//b[") == 1
    assert run("pause", "x", "--tenant", "t") == 0
    capsys.readouterr()
    value = shown(capsys, "x", "--tenant", "t")
    assert (value["state"], value["query"], value["delivery_target"]) == ("paused", "//b", "console")
    assert run("resume", "x", "--tenant", "t") == 0
    assert run("remove", "x", "y", "--tenant", "t") == 1
    assert capsys.readouterr().err == "tamis: there is no subscription y\n"
    assert run("show", "x", "--tenant", "t") == 1
    assert "unknown-subscription" in capsys.readouterr().err


def test_list_shows_queries_as_they_are(capsys: Captured) -> None:
    for number in range(3):
        run("add", f"//a[{number + 1}]", "--subscriber", "bob", "--id", f"s{number}")
    capsys.readouterr()
    assert run("list", "--limit", "2") == 0
    out, err = capsys.readouterr()
    assert "//a[1]" in out
    assert "//a[2]" in out
    assert "//a[3]" not in out
    assert "more" in err
    assert run("list", "--text", "A[3") == 0
    assert "s2" in capsys.readouterr().out


def test_import_reports_refused_lines_and_goes_on(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    good = '{"id": "a", "subscriber": "bob", "query": "//a"}'
    text = f'{good}\n{{"subscriber": "bob", "query": "//a[b AND c]"}}\n\nnonsense\n{{"query": "//a"}}\n'
    Path("lines").write_text(text)
    assert run("import", "lines") == 0
    out, err = capsys.readouterr()
    assert out == "1 added, 0 changed, 0 unchanged, 3 refused\n"
    first, second, third = err.splitlines()
    assert first.startswith("lines:2: column 7: syntax: ")
    assert second.startswith("lines:4: column 1: bad-json: ")
    assert third == "lines:5: bad-line: `subscriber` is missing"
    assert run("import", "lines", "--strict") == 2
    assert capsys.readouterr().out == "0 added, 0 changed, 1 unchanged, 3 refused\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(good.replace("//a", "//b").encode())))
    assert run("import", "-") == 0
    assert capsys.readouterr().out == "0 added, 1 changed, 0 unchanged, 0 refused\n"


def test_a_file_that_is_not_there_makes_no_catalog(capsys: Captured) -> None:
    assert run("import", "nowhere") == 1
    assert "nowhere" in capsys.readouterr().err
    assert not Path("tamis.db").exists()


def test_export_and_import_are_inverse(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("p.toml").write_text('p = "urn:x"')
    assert run("prefixes", "put", "m", "p.toml") == 0
    run("add", "//p:a", "--subscriber", "bob", "--prefixes", "m")
    capsys.readouterr()
    assert run("export") == 0
    exported = capsys.readouterr().out
    assert run("export", "--output", "lines") == 0
    assert Path("lines").read_text() == exported
    monkeypatch.setenv("TAMIS_CATALOG", "sqlite:///other.db")
    assert run("import", "lines") == 0
    assert run("export") == 0
    assert capsys.readouterr().out == f"2 added, 0 changed, 0 unchanged, 0 refused\n{exported}"


def test_prefix_maps(capsys: Captured) -> None:
    Path("p.toml").write_text('[namespaces]\np = "urn:x"')
    assert run("prefixes", "put", "m", "p.toml", "--tenant", "t") == 0
    assert run("prefixes", "list") == 0
    assert capsys.readouterr().out == "t\tm\tp\turn:x\n"
    assert run("prefixes", "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == {"prefix_map": "m", "tenant": "t", "prefixes": {"p": "urn:x"}}
    assert run("prefixes", "remove", "m") == 1
    assert run("prefixes", "remove", "m", "--tenant", "t") == 0


def test_an_unreachable_catalog_is_reported_in_one_line(capsys: Captured) -> None:
    assert run("list", "--catalog", "sqlite:////nowhere/at/all.db") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("tamis: catalog-unreachable: ")


def network(folder: Path) -> None:
    """This catalog is that of a broker with one neighbour."""
    (folder / "tamis.toml").write_text("[broker]\nname = 'a'\n")
    link = "[[link]]\nends = ['a', 'b']\npath = 'links'\n"
    (folder / "network.toml").write_text(f"[[broker]]\nname = 'a'\n[[broker]]\nname = 'b'\n{link}")


def test_show_says_where_a_subscription_is_established(folder: Path, capsys: Captured) -> None:
    network(folder)
    run("add", "//a", "--subscriber", "bob", "--id", "x")
    capsys.readouterr()
    assert shown(capsys, "x")["established"] == {"brokers": [], "missing": ["a", "b"]}
    with Catalog("tamis.db") as catalog:
        catalog.routes.establish({"a": catalog.version.count})
    assert shown(capsys, "x")["established"] == {"brokers": ["a"], "missing": ["b"]}
    run("pause", "x")
    assert shown(capsys, "x")["established"] == {"brokers": [], "missing": ["a", "b"]}


def test_add_waits_until_a_subscription_is_established(folder: Path, capsys: Captured) -> None:
    assert run("add", "//a", "--subscriber", "bob", "--wait") == 1
    assert "no-network" in capsys.readouterr().err
    network(folder)
    assert run("add", "//a", "--subscriber", "bob", "--wait", "--timeout", "0") == 1
    assert "not-established: after 0 s not established at a, b" in capsys.readouterr().err

    def establish() -> None:
        with Catalog("tamis.db") as catalog:
            until(lambda: any(one.id == "x" for one in catalog.list()), "the subscription")
            catalog.routes.establish(dict.fromkeys("ab", catalog.version.count))

    with ThreadPoolExecutor() as pool:
        done = pool.submit(establish)
        assert run("add", "//b", "--subscriber", "bob", "--id", "x", "--wait") == 0
        done.result()
    out, err = capsys.readouterr()
    assert (out, err) == ("x\n", "established at a, b\n")
