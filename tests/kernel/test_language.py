"""Queries as data: what is one query, what is not, and what is refused."""

import tomllib
from typing import Any

import pytest

import tamis
from tests.helpers import CASES

FILES = [tomllib.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.toml"))]
PREFIXES = {"p": "urn:p", "r": "urn:p"}


def rows(key: str) -> list[Any]:
    """The rows of one table in all files of cases."""
    return [row for file in FILES for row in file.get(key, [])]


@pytest.mark.parametrize("group", rows("same"), ids=lambda group: group["canonical"])
def test_spellings_of_one_query(group: dict[str, Any]) -> None:
    checked = {tamis.check(text, PREFIXES) for text in [group["canonical"], *group["queries"]]}
    (query,) = checked
    assert query.canonical == group["canonical"]


@pytest.mark.parametrize("group", rows("distinct"), ids=lambda group: group["queries"][0])
def test_queries_that_look_alike(group: dict[str, Any]) -> None:
    assert len({tamis.check(text, PREFIXES).id for text in group["queries"]}) == len(group["queries"])


@pytest.mark.parametrize(("text", "code", "offset", "words"), rows("refused"))
def test_refusals(text: str, code: str, offset: int, words: str) -> None:
    with pytest.raises(tamis.QueryError) as caught:
        tamis.check(text, {"p": "urn:p"})
    assert (caught.value.code, caught.value.offset) == (code, offset)
    assert words in caught.value.reason


def test_ids_are_the_same_everywhere_and_always() -> None:
    assert tamis.check("/a").id == tamis.check("a").id
    assert tamis.check("//b[@x = 1]").id == "cc6042d7bd0b857c63fc5e5e126514f8"


def test_decompositions_are_tables() -> None:
    parts = tamis.decompose(["/a/b[@x = 1][c]//e", "//b[", "not(//d) or //f/text() = 'x'"])
    assert parts.queries["query"].to_pylist() == [0, 2]
    assert parts.errors.select(["query", "code"]).to_pylist() == [{"query": 1, "code": "syntax"}]
    first = [row for row in parts.steps.to_pylist() if row["query"] == 0]
    assert {(row["axis"], row["name"]) for row in first} == {
        ("child", "a"), ("child", "b"), ("child", "c"), ("descendant", "e"),
    }  # fmt: skip
    (branching,) = [row["name"] for row in first if row["branches"] > 1]
    assert branching == "b"
    lines = [row for row in parts.lines.to_pylist() if row["query"] == 0]
    tests = {(row["subject"], row["name"], row["operator"], row["number"]) for row in lines}
    assert ("attribute", "x", "=", 1.0) in tests
    ways = [row for row in parts.alternatives.to_pylist() if row["query"] == 0]
    assert [(len(way["positive"]), way["negative"]) for way in ways] == [(3, [])]
    tree = [(row["operator"], row["argument"]) for row in parts.postfix.to_pylist() if row["query"] == 2]
    assert tree[-1] == ("or", 2)
    assert sorted(tree[:-1]) == [("not", 1), ("path", 0), ("path", 1)]


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(tamis.QueryError) as refused:
        tamis.check("//a\n[. = '\ud800']")
    assert (refused.value.code, refused.value.line, refused.value.column) == ("syntax", 2, 7)
    with pytest.raises(tamis.QueryError):
        tamis.Index().insert(1, "//\ud800")
    with pytest.raises(tamis.QueryError) as refused:
        tamis.check("//p:a", {"p": "\ud800"})
    assert refused.value.code == "namespace"
