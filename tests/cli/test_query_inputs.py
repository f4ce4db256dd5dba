"""Where `match`, `transform` and `explain` take queries, documents and prefixes from."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from tamis import cli
from tamis.model.query_file import queries_of_file

INVOICE = "<Invoice xmlns='urn:i' xmlns:c='urn:c'><c:ID>7</c:ID></Invoice>"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, with documents."""
    monkeypatch.chdir(tmp_path)
    Path("one.xml").write_text("<a><b x='1'>t</b></a>")
    Path("invoice.xml").write_text(INVOICE)
    Path("bad.xml").write_text("<a>\n <b></a>")


def run(*arguments: str) -> int:
    return cli.main(arguments)


def test_queries_of_the_command_line_are_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("match", "-q", "//b", "-q", "//c", "-q", "/a", "one.xml") == 0
    assert capsys.readouterr().out == "one.xml\t1 3\n"


def test_a_query_past_the_work_limit_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    hard = f"string-length(concat({', '.join(['.'] * 1000)})) = 1"
    Path("queries.txt").write_text(f"/a\n{hard}\n")
    Path("long.xml").write_text(f"<a>{'x' * 1_000_000}</a>")
    assert run("match", "--queries", "queries.txt", "long.xml", "one.xml") == 0
    out, err = capsys.readouterr()
    assert out == "long.xml\t1\none.xml\t1\n"
    assert err == "queries.txt:2: work-limit: the query takes more than 268435456 steps on long.xml\n"
    assert run("transform", "-q", hard, "long.xml") == 0
    assert "\tERROR work-limit: " in capsys.readouterr().out


def test_limits_are_flags(capsys: pytest.CaptureFixture[str]) -> None:
    Path("attachment.xml").write_text(f"<a>{'x' * (2 << 20)}</a>")
    Path("entity.xml").write_text("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>")
    # A text may be as long as the document.
    assert run("match", "-q", "/a", "attachment.xml") == 0
    assert run("match", "-q", "/a", "--limit", "text=1MiB", "attachment.xml") == 0
    assert run("transform", "-q", "/a", "--limit", "document=64KiB", "attachment.xml") == 0
    assert run("explain", "/a", "--limit", "internal_subset=true", "entity.xml") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "attachment.xml\t1"
    assert lines[1].startswith("attachment.xml\tERROR text-limit: ")
    assert "1048576" in lines[1]
    assert lines[2].startswith("attachment.xml\tERROR document-limit: ")
    for wrong in ("length=1", "depth", "depth=low", "internal_subset=1", "depth=-1"):
        with pytest.raises(SystemExit, match="2"):
            run("match", "-q", "/a", "--limit", wrong, "one.xml")
        assert wrong.partition("=")[0] in capsys.readouterr().err


def test_documents_in_other_encodings(capsys: pytest.CaptureFixture[str]) -> None:
    head = "<?xml version='1.0' encoding='windows-1252'?>\n"
    Path("latin.xml").write_bytes(f"{head}<a><b>é€</b></a>".encode("windows-1252"))
    Path("broken.xml").write_bytes(f"{head}<a>é€</b>".encode("windows-1252"))
    assert run("match", "-q", "//b[. = 'é€']", "latin.xml") == 0
    assert run("transform", "-q", "for $b in //b return <c>{string($b)}</c>", "latin.xml") == 0
    assert run("explain", "//b", "latin.xml") == 0
    assert run("explain", "//b", "broken.xml") == 1
    out = capsys.readouterr().out
    assert out.startswith("latin.xml\t1\nlatin.xml\t1\n<c>é€</c>\n")
    assert "<b>é€</b>" in out
    assert "broken.xml:2:6: " in out
    assert "<a>é€</b>" in out


def test_a_refused_query_of_the_command_line_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("match", "-q", "//b[", "-q", "//b", "one.xml") == 1
    out, err = capsys.readouterr()
    assert out == "one.xml\t2\n"
    assert err.startswith("query 1: ")
    assert "^" in err


def test_files_of_queries_have_comments_and_continued_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Path("queries.txt").write_text("# all\n//b\n\n//a[ \\\r\n  b ]\n  # indented\n//c\\\n")
    assert run("match", "--show-query", "--queries", "queries.txt", "one.xml") == 0
    assert capsys.readouterr() == ("one.xml\t2\t//b\none.xml\t4\t//a[    b ]\n", "")


def test_a_continued_query_keeps_its_first_line_and_its_positions(capsys: pytest.CaptureFixture[str]) -> None:
    Path("queries.txt").write_text("# one\n//a[ \\\n b AND c]\n//b")
    assert run("match", "--queries", "queries.txt", "one.xml") == 0
    out, err = capsys.readouterr()
    assert out == "one.xml\t4\n"
    first, query, mark = err.splitlines()
    assert first.startswith("queries.txt:2: ")
    assert query[mark.index("^")] == "A"


def test_a_query_at_the_end_of_a_file_may_not_end() -> None:
    assert list(queries_of_file(b"\xef\xbb\xbf//a\\")) == [(1, b"//a\n")]


def test_documents_come_from_gzip_and_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("one.xml.gz").write_bytes(gzip.compress(b"<a><b/></a>"))
    Path("cut.xml.gz").write_bytes(gzip.compress(b"<a><b/></a>")[:-9])
    Path("no.xml.gz").write_bytes(b"<a/>")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<b/>")))
    assert run("match", "-q", "//b", "one.xml.gz", "-", "cut.xml.gz", "no.xml.gz") == 0
    one, standard, cut, no = capsys.readouterr().out.splitlines()
    assert (one, standard) == ("one.xml.gz\t1", "-\t1")
    assert cut.startswith("cut.xml.gz\tERROR bad-gzip: ")
    assert no.startswith("no.xml.gz\tERROR bad-gzip: ")


def test_a_small_file_does_not_become_a_large_document(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bomb.xml.gz").write_bytes(gzip.compress(b" " * (11 << 20)))
    assert run("match", "-q", "//b", "bomb.xml.gz") == 0
    assert capsys.readouterr().out.startswith("bomb.xml.gz\tERROR document-limit: ")


def test_matches_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("match", "--json", "--show-query", "-q", "//b", "-q", "//c", "one.xml", "bad.xml") == 0
    one, bad = map(json.loads, capsys.readouterr().out.splitlines())
    assert one == {"document": "one.xml", "matches": [1], "queries": ["//b"]}
    assert {**bad, "reason": ""} == {
        "document": "bad.xml", "error": "mismatched-tag", "reason": "", "line": 2, "column": 5
    }  # fmt: skip


@pytest.mark.parametrize(
    "flags",
    [
        ["--namespace", "default=urn:i", "--namespace", "c=urn:c"],
        ["--namespaces-from", "invoice.xml"],
        ["--namespaces", "prefixes.toml", "--namespace", "c=urn:c"],
    ],
)
def test_prefixes(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("prefixes.toml").write_text('default = "urn:i"\nc = "urn:other"')
    assert run("match", *flags, "-q", "/default:Invoice/c:ID", "invoice.xml") == 0
    assert capsys.readouterr().out == "invoice.xml\t1\n"
    assert run("check", *flags, "/default:Invoice/c:ID") == 0
    assert run("explain", *flags, "/default:Invoice/c:ID", "invoice.xml") == 0


@pytest.mark.parametrize(
    "flags", [["--default-namespace", "urn:i"], ["--namespace", "=urn:i"], ["--namespaces", "default.toml"]]
)
def test_a_default_namespace(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("default.toml").write_text('"" = "urn:i"')
    assert run("check", *flags, "//Invoice/@ID") == 0
    assert capsys.readouterr().out == "//Q{urn:i}Invoice/@ID\n"


@pytest.mark.parametrize(
    ("query", "instead"),
    [
        ("//Invoice/ID", "//Q{urn:i}Invoice/Q{urn:c}ID"),
        ("//Invoice[ID > 5]", "//Q{urn:i}Invoice[Q{urn:c}ID>5]"),
        ("count(//ID) = 1", "count(//Q{urn:c}ID)=1"),
        ("for $i in //Invoice return <r/>", "for $v in //Q{urn:i}Invoice return <r/>"),
    ],
)
def test_only_the_namespace_differs(query: str, instead: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("explain", "check"):
        assert run(command, query, "invoice.xml") == 0
        out = capsys.readouterr().out
        assert "does not match: only the namespace differs: " in out
        assert f"; write `{instead}`, or " in out
    assert run("check", instead, "invoice.xml") == 0
    assert capsys.readouterr().out.endswith("invoice.xml: matches\n")


@pytest.mark.parametrize("query", ["//Invoice/c", "//Invoice[*:ID = 8]", "//b"])
def test_not_only_the_namespace_differs(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", query, "invoice.xml") == 0
    assert "namespace" not in capsys.readouterr().out


def test_an_unbound_prefix_is_offered_as_the_document_binds_it(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("explain", "check"):
        assert run(command, "//Q{urn:i}Invoice/c:ID", "invoice.xml") == 1
        assert capsys.readouterr().out.endswith("\ninvoice.xml binds `c`; add --namespace c=urn:c\n")
    assert run("check", "//other:ID", "invoice.xml") == 1
    assert "--namespace " not in capsys.readouterr().out


def test_a_prefix_with_two_meanings_keeps_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.xml").write_text("<p:a xmlns:p='urn:1'><p:b xmlns:p='urn:2'/></p:a>")
    assert run("check", "--namespaces-from", "two.xml", "/p:a") == 0
    out, err = capsys.readouterr()
    assert "urn:1" in out
    assert err == "tamis: two.xml: p is also bound to urn:2\n"


@pytest.mark.parametrize("flags", [["--namespace", "p"], ["--namespaces-from", "bad.xml"]])
def test_wrong_prefixes(flags: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("check", *flags, "//a")
    assert caught.value.code == 2


def test_explain_is_short_unless_the_plan_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "/a/b[@x > 5]", "one.xml") == 0
    assert capsys.readouterr().out.splitlines() == [
        "/a/b[@x>5]",
        "does not match: /a/b/@x>5 is not there",
        "  /a/b/@x>5: >5 fails at line 1: <b x='1'>t</b>",
    ]
    assert run("explain", "--verbose", "/a/b[@x > 5]", "one.xml") == 0
    assert "alternatives:" in capsys.readouterr().out
