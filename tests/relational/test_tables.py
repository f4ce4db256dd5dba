"""The tables of subscriptions: what a row says, and that changes step by step equal building at once."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli.commands import main
from tamis.model.version import Version
from tamis.relational import tables as relational
from tamis.relational.alternative import Decomposed, decomposed
from tamis.relational.path_match import MAX_BINDINGS, PathMatcher, document
from tamis.relational.tables import Tables, TablesError
from tests.helpers import random_documents as documents
from tests.kernel.test_random import Group


def rows_of(query: str) -> list[Any]:
    (one,) = decomposed([query])
    assert isinstance(one, Decomposed)
    return list(one.rows)


def test_anchors_stand_where_lines_part() -> None:
    (row,) = rows_of("//item[price > 50][tag = 'sale']/@id")
    assert [(line["operator"], line["places"], line["anchor"]) for line in row["lines"]] == [
        ("=", [0], 0), (">", [0], 0), ("exists", [0], 0),
    ]  # fmt: skip
    assert row["anchors"] == [{"level": 1, "parent": -1, "needs": 3}]
    assert (row["needs"], row["access"], row["reason"]) == (1, "text", None)


def test_equal_lines_with_other_branch_points_differ() -> None:
    (deep,) = rows_of("//a[b/c = 1][b/d = 2]")
    (high,) = rows_of("//a/b[c = 1][d = 2]")
    assert [line["path"] for line in deep["lines"]] == [line["path"] for line in high["lines"]]
    assert [line["places"] for line in deep["lines"]] == [[0], [0]]
    assert [line["places"] for line in high["lines"]] == [[1], [1]]


REASONS = {
    "//a[count(b) > 1]": "a value is computed on the message",
    "//a[b][2]": "a position counts what other predicates leave",
    "//a[normalize-space(.) = 'x']": "white space is normalised",
    "$envelope/topic = 'x'": "the envelope is asked",
    " and ".join(f"//a{n}" for n in range(40)): "an alternative has more than 32 lines",
    "/".join(f"/a{n}[b]" for n in range(12)): "more than 8 branch points lie inside one another",
}


@pytest.mark.parametrize("query", REASONS)
def test_what_joins_cannot_decide_has_a_reason(query: str) -> None:
    assert {row["reason"] for row in rows_of(query)} == {REASONS[query]}


def test_what_can_never_hold_has_no_row() -> None:
    assert rows_of("//a < 'x'") == []


def path_match(tag_path: str, linear: str, kind: str, steps: int) -> list[Any]:
    return PathMatcher({1: (linear, kind, steps)}).match({2: tag_path}).to_pylist()


def test_bindings_are_positions_and_ambiguous_ones_are_several() -> None:
    (row,) = path_match("/a/b/b/x/@y", "/a//b//@y", "attribute", 2)
    assert row == {"tag_path": 2, "path": 1, "bindings": [[1, 2], [1, 3]], "is_bounded": True}
    (row,) = path_match("/a/b/b/x/@y", "/a//b/x/@y", "attribute", 3)
    assert row["bindings"] == [[1, 3, 4]]
    assert path_match("/a/b", "/a", "element", 1) == []
    assert path_match("/a/b/text()", "/a/b", "element", 2) == []
    (row,) = path_match(
        "/Q{u&'}a/Q{http://www.w3.org/XML/1998/namespace}b/@Q{v}c", "//*:b/@*", "attribute", 1
    )
    assert row["bindings"] == [[2]]


def test_too_many_bindings_are_told() -> None:
    (row,) = path_match("/a" * 256, "//a//a//a//a", "element", 4)
    assert (row["is_bounded"], row["bindings"]) == (False, [])
    (row,) = path_match("/a" * MAX_BINDINGS, "//a//a", "element", 2)
    assert (row["is_bounded"], len(row["bindings"])) == (True, MAX_BINDINGS - 1)


def test_documents_of_tag_paths() -> None:
    assert document("/a/b/text()") == '<a xmlns=""><b xmlns="">text</b></a>'


def subscriptions(random: Random) -> list[dict[str, Any]]:
    group = Group(random)
    return [
        {"target": at, "tenant": f"t{at % 3}", "query": query.text} for at, query in enumerate(group.queries)
    ]


def content(tables: Tables) -> dict[str, list[str]]:
    """The live rows without the number of their change."""
    return {
        name: sorted(repr({**row, "change": 0}) for row in tables.live(name).to_pylist())
        for name in ("alternatives", "subscriptions", "linear_paths")
    }


def test_changes_step_by_step_equal_building_at_once(tmp_path: Path) -> None:
    random = Random(5)
    rows = subscriptions(random)
    tables = Tables.create(tmp_path / "steps")
    live: dict[int, dict[str, Any]] = {}
    for step in range(12):
        added = random.sample(rows, 40)
        if step % 3 == 2:
            # Under other numbers: queries are shared.
            added = [{**row, "target": row["target"] + 1000} for row in added]
        removed = random.sample(sorted(live), min(len(live), 30))
        tables.change(pa.Table.from_pylist(added), removed, namespaces=documents.NAMESPACES)
        live = {target: row for target, row in live.items() if target not in removed}
        live |= {row["target"]: row for row in added}
        written = sum(sum(change.rows.values()) for change in tables.changes[-1:])
        assert written < 25 * (len(added) + len(removed))
    built = Tables.create(tmp_path / "built")
    built.change(pa.Table.from_pylist(list(live.values())), namespaces=documents.NAMESPACES)
    assert content(tables) == content(built)
    tables.compact()
    assert content(Tables.open(tmp_path / "steps")) == content(built)
    tables.change(None, sorted(live))
    assert content(tables) == {"alternatives": [], "subscriptions": [], "linear_paths": []}


def test_refused_queries_are_told_and_stop_nothing(tmp_path: Path) -> None:
    tables = Tables.create(tmp_path)
    (refused,) = tables.change(pa.table({"target": [1, 2], "query": ["//a[", "//b"]}))
    assert (refused.query, refused.code) == (0, "syntax")
    assert [row["target"] for row in tables.subscriptions().to_pylist()] == [2]


def test_tag_paths_are_remembered_and_forgotten(tmp_path: Path) -> None:
    tables = Tables.create(tmp_path)
    tables.change(pa.table({"target": [1], "query": ["//b = 'x'"]}))
    matches, unknown = tables.path_matches({1: "/a/b", 2: "/a"})
    assert ([row["tag_path"] for row in matches.to_pylist()], unknown) == ([1], set())
    assert tables.tag_paths() == {1: "/a/b", 2: "/a"}
    assert tables.forget("/a/b")
    assert not tables.forget("/a/b")
    assert tables.tag_paths() == {2: "/a"}
    with pytest.raises(TablesError, match="path-hash"):
        tables.path_matches({2: "/other"})


def test_tag_paths_past_the_limit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relational, "MAX_TAG_PATHS", 2)
    tables = Tables.create(tmp_path)
    tables.change(pa.table({"target": [1], "query": ["//b = 'x'"]}))
    matches, unknown = tables.path_matches({1: "/a", 2: "/a/b", 3: "/c/b"})
    assert (len(matches), unknown) == (1, {3})


def test_tables_that_cannot_be_used_have_codes(tmp_path: Path) -> None:
    tables = Tables.create(tmp_path)
    tables.change(pa.table({"target": [1], "query": ["//b"]}), catalog="c", version=Version(7, "m"))
    manifest = tmp_path / "manifest.json"
    good = manifest.read_text()
    Tables.open(tmp_path).require("c", Version(7, "m"))
    for catalog, version, wrong in (
        ("d", Version(7, "m"), "tables-foreign"),
        ("c", Version(7, "n"), "tables-old"),
        ("c", Version(8, "o"), "tables-old"),
        ("c", Version(6, "l"), "tables-new"),
    ):
        with pytest.raises(TablesError, match=wrong):
            Tables.open(tmp_path).require(catalog, version)

    def code(text: str | None = None) -> str:
        manifest.write_text(good if text is None else text)
        with pytest.raises(TablesError) as caught:
            Tables.open(tmp_path).live("alternatives")
        return caught.value.code

    assert code("{") == "tables-damaged"
    assert code("{}") == "tables-foreign"
    assert code(json.dumps({**json.loads(good), "format": 99})) == "tables-format"
    with pytest.raises(TablesError, match="tables-exist"):
        Tables.create(tmp_path)
    (file,) = tables.files("alternatives")
    whole = Path(file).read_bytes()
    Path(file).write_bytes(whole[: len(whole) // 2])
    assert code() == "tables-damaged"
    Path(file).unlink()
    assert code() == "tables-damaged"
    manifest.unlink()
    with pytest.raises(TablesError, match="no-tables"):
        Tables.open(tmp_path)


def test_files_are_plain_parquet(tmp_path: Path) -> None:
    tables = Tables.create(tmp_path)
    tables.change(pa.table({"target": [1], "query": ["//b = 1"]}))
    (file,) = tables.files("alternatives")
    assert pq.read_table(file).column("access").to_pylist() == ["number"]


def test_explain_shows_what_the_tables_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document_ = tmp_path / "a.xml"
    document_.write_text("<a><b/></a>")
    for query, wanted in (
        ("//a[not(b)]", "verified by the kernel: what is negated may be at another element"),
        (
            "not(/a/c)",
            "  not /a/c\n  nothing is necessary: a candidate for every message\n  decided by joins",
        ),
        ("//a < 'x'", "no message satisfies it"),
    ):
        assert main(["explain", "--engine", "relational", query, str(document_)]) == 0
        assert wanted in capsys.readouterr().out
