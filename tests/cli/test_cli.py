"""The commands `check`, `match`, `transform` and `explain`: output and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with documents."""
    monkeypatch.chdir(tmp_path)
    Path("one.xml").write_text("<a><b x='1'>t</b></a>")
    Path("two.xml").write_text("<a xmlns='urn:p'><b/></a>")
    Path("bad.xml").write_text("<a>\n <b></a>")
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(arguments)


def test_check_prints_the_canonical_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "a[ ./b and 'x' = @c ]") == 0
    assert capsys.readouterr().out == "/a[b][@c='x']\n"


def test_check_warns_of_a_query_that_can_never_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "//a[@d > '2026-01-01']") == 0
    printed = capsys.readouterr()
    assert printed.out == "false()\n"
    first, query, mark = printed.err.splitlines()
    assert first.startswith("warning: 1:8: `>` compares numbers")
    assert query[mark.index("^")] == ">"


def test_check_marks_the_spot(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "a[b AND c]") == 1
    first, query, mark = capsys.readouterr().out.splitlines()
    assert first.startswith("1:5: ")
    assert "`and`" in first
    assert query[mark.index("^")] == "A"


def test_check_marks_the_spot_in_the_right_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "a\n[é == 1]") == 1
    first, query, mark = capsys.readouterr().out.splitlines()
    assert first.startswith("2:4: ")
    assert query == "  [é == 1]"
    assert mark.index("^") - 2 == 3


def test_match_prints_line_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("queries.txt").write_text("//b\n\n/a/b[@x = 1]\n/c\n//b\r\nnot(//c)")
    assert run("match", "--queries", "queries.txt", "one.xml", "two.xml") == 0
    assert capsys.readouterr().out == "one.xml\t1 3 5 6\ntwo.xml\t6\n"


def test_match_reports_refused_queries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("queries.txt").write_bytes(b"//b\n//b[\n//p:b\n\xff\n//a")
    assert run("match", "--queries", "queries.txt", "one.xml") == 0
    out, err = capsys.readouterr()
    assert out == "one.xml\t1 5\n"
    reported = [line for line in err.splitlines() if line.startswith("queries.txt:")]
    assert [line.split(":")[1] for line in reported] == ["2", "3", "4"]
    assert "prefix `p`" in reported[1]
    assert run("match", "--strict", "--queries", "queries.txt", "one.xml") == 2


def test_match_reports_malformed_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("queries.txt").write_text("//b")
    assert run("match", "--queries", "queries.txt", "bad.xml", "one.xml") == 0
    bad, one = capsys.readouterr().out.splitlines()
    assert bad.startswith("bad.xml\tERROR mismatched-tag: ")
    assert bad.endswith("(line 2, column 5)")
    assert one == "one.xml\t1"
    assert run("match", "--strict", "--queries", "queries.txt", "bad.xml", "one.xml") == 2


def test_match_reports_what_cannot_be_opened(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("queries.txt").write_text("//b")
    assert run("match", "--queries", "queries.txt", "none.xml", "one.xml") == 0, "as a malformed one"
    assert capsys.readouterr().out == "none.xml\tERROR no-file: No such file or directory\none.xml\t1\n"
    assert run("match", "--strict", "--queries", "queries.txt", "none.xml", "one.xml") == 2
    assert run("match", "--queries", "nowhere.txt", "one.xml") == 1
    assert "nowhere.txt" in capsys.readouterr().err


def test_a_document_that_matches_nothing_has_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("queries.txt").write_text("/c\n")
    assert run("match", "--queries", "queries.txt", "one.xml") == 0
    assert capsys.readouterr().out == "one.xml\t\n"


@pytest.mark.parametrize("content", ['p = "urn:p"\n', '[namespaces]\np = "urn:p"\n'])
def test_namespaces_come_from_toml(folder: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("prefixes.toml").write_text(content)
    Path("queries.txt").write_text("/p:a/p:b")
    arguments = ("--namespaces", "prefixes.toml")
    assert run("match", "--queries", "queries.txt", *arguments, "one.xml", "two.xml") == 0
    assert capsys.readouterr().out == "one.xml\t\ntwo.xml\t1\n"
    assert run("check", *arguments, "//p:a") == 0
    assert "urn:p" in capsys.readouterr().out


def test_a_broken_namespaces_file_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("prefixes.toml").write_text("p = 1")
    with pytest.raises(SystemExit) as caught:
        run("check", "--namespaces", "prefixes.toml", "//a")
    assert caught.value.code == 2
    assert "prefixes.toml" in capsys.readouterr().err


def test_transform_prints_what_queries_make(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["for $b in //b return <c>{ $b/@x }</c>", "/a/b", "for $b in /nothing return $b"]
    Path("queries.txt").write_text("\n".join(lines))
    assert run("transform", "--queries", "queries.txt", "one.xml", "bad.xml") == 0
    assert capsys.readouterr().out.splitlines() == [
        "one.xml\t1",
        '<c x="1"/>',
        "one.xml\t2",
        "<a><b x='1'>t</b></a>",
        "bad.xml\tERROR mismatched-tag: </b> is expected, not </a> (line 2, column 5)",
    ]


def test_transform_prints_json_and_takes_a_dtd(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.dtd").write_text("<!ELEMENT a (b)> <!ELEMENT b (#PCDATA)> <!ATTLIST b x CDATA #IMPLIED>")
    Path("queries.txt").write_text("<all>{ for $b in //b return $b/text() }</all>\nfor $b in //b")
    arguments = ["--queries", "queries.txt", "--dtd", "a.dtd", "--json", "one.xml", "gone.xml"]
    assert run("transform", *arguments) == 0
    captured = capsys.readouterr()
    assert [json.loads(line) for line in captured.out.splitlines()] == [
        {"document": "one.xml", "query": 1, "output": "<all>t</all>"},
        {"document": "gone.xml", "error": "no-file", "reason": "No such file or directory"},
    ]
    assert captured.err.startswith("queries.txt:2: ")
    assert run("transform", "--strict", *arguments[:-1]) == 2


def test_explain_shows_the_operators_of_a_transformation(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.dtd").write_text("<!ELEMENT a (b)> <!ELEMENT b (#PCDATA)> <!ATTLIST b x CDATA #IMPLIED>")
    query = "for $b in //b where $b/@x = 1 return <c>{ $b/text() }</c>"
    assert run("explain", "--verbose", query, "one.xml") == 0
    printed = capsys.readouterr().out
    assert "condition  //b/@x by //b = 1: 1; found by matching, semijoin; not shared" in printed
    assert "group      //b/text() by //b: 1; merged by depth; not shared" in printed
    assert (
        run(
            "explain", "--verbose", "for $b in /a where $b//b return <c>{ $b/nothing }{ $b/b }</c>", "one.xml"
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "join       /a with //b: 1; merged (claim 4), no duplicates (claim 3); not shared" in printed
    assert "group      /a/nothing by /a: 0; merged by depth; not shared" in printed
    assert "group      /a/b by /a: 1; merged by depth; not shared" in printed
    assert run("explain", "--verbose", "for $b in //b where $b//b or $b//@x return $b//b//b", "one.xml") == 0
    printed = capsys.readouterr().out
    assert "group      //b//b//b by //b: 0; merged, duplicates eliminated; not shared" in printed
    assert run("explain", "--verbose", "--dtd", "a.dtd", query, "one.xml") == 0
    assert (
        "bindings   /a/b with 1 conditions: 1; no duplicates (claim 1); not shared" in capsys.readouterr().out
    )


def test_explain_shows_the_failed_test(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "/a/b[@x > 5]", "one.xml") == 0
    printed = capsys.readouterr().out
    assert "does not match" in printed
    assert "@x" in printed
    assert run("explain", "/a/b[@x = 1]", "one.xml") == 0
    assert "\nmatches" in capsys.readouterr().out
    assert run("explain", "/a[", "one.xml") == 1
    assert run("explain", "/a", "bad.xml") == 1


def test_the_command_runs_as_a_program(folder: Path) -> None:
    Path("queries.txt").write_text("//b")
    command = [sys.executable, "-m", "tamis.cli", "match", "--queries", "queries.txt", "one.xml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("one.xml\t1\n", "")


def test_the_demo_shows_whom_messages_reach() -> None:
    done = subprocess.run([sys.executable, "-m", "tamis.demo"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for printed in (
        "harbour office",
        "storm watch",
        "refused: `AND`",
        "is a dead letter",
        "+ second reader",
        "The page: http://127.0.0.1:",
        "Log in with tamis_",
        "1 dead;",
        "all received",
    ):
        assert printed in done.stdout


def test_the_demo_of_a_network_shows_what_crosses() -> None:
    environment = os.environ | {"NETWORK": "1"}
    demo = [sys.executable, "-m", "tamis.demo"]
    done = subprocess.run(demo, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for printed in (
        "established for all six brokers",
        "ferry.xml crosses to two: it satisfies",
        "match.xml does not cross to two: it satisfies none of",
        "weather map at six",
        "5 messages crossed 13 links; flooding would be 25. 7 deliveries, each once.",
    ):
        assert printed in done.stdout


def test_documents_have_headers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "$envelope/header[@name = 'priority'] = 'high'"
    document = str(folder / "headers.xml")
    Path(document).write_text("<a/>")
    for headers, matches in (
        (["--header", "priority=high"], "1"),
        (["--header", "priority=low"], ""),
        ([], ""),
    ):
        assert run("match", "-q", query, *headers, document) == 0
        assert capsys.readouterr().out == f"{document}\t{matches}\n"
    assert run("explain", query, document, "--header", "priority=high") == 0
    assert capsys.readouterr().out.endswith("\nmatches\n")
    assert (
        run("transform", "-q", f"for $a in /a[{query}] return $a", "--header", "priority=high", document) == 0
    )
    assert "<a/>" in capsys.readouterr().out
    assert run("match", "-q", query, "--header", "no sign", document) == 1
    assert "NAME=VALUE" in capsys.readouterr().err
