"""The lines of `tamis.decompose`, fit for joins: paths, hashes, anchors; one line for `b//@x`."""

from random import Random
from typing import Any

import pytest
from lxml import etree

import tamis
from tests.helpers import random_documents as documents
from tests.kernel.test_random import Group


def lines_of(query: str) -> list[Any]:
    return tamis.decompose([query]).lines.to_pylist()


def test_lines_have_their_paths_and_where_their_steps_stand() -> None:
    parts = tamis.decompose(["/r//a[b/@x = 1]//c/text()"])
    lines = {row["path"]: row["steps"] for row in parts.lines.to_pylist()}
    (way,) = parts.alternatives.to_pylist()
    assert set(lines) == {"/r//a/b/@x", "/r//a//c/text()"}
    (anchor,) = way["anchors"]
    assert {steps.index(anchor) for steps in lines.values()} == {1}
    assert {row["path_hash"] for row in parts.lines.to_pylist()} == {
        row["path_hash"] for query in ("/r//a/b/@x = 2", "/r//a//c/text() != 'y'") for row in lines_of(query)
    }


@pytest.mark.parametrize("leaf", ["@x", "text()"])
def test_a_leaf_below_a_step_is_one_line(leaf: str) -> None:
    query = "/a[" + " and ".join(f"b{number}//{leaf} = 'v'" for number in range(6)) + "]"
    parts = tamis.decompose([query])
    (way,) = parts.alternatives.to_pylist()
    assert (len(way["positive"]), way["exact"]) == (6, True)
    assert {row["path"] for row in parts.lines.to_pylist()} == {f"/a/b{n}//{leaf}" for n in range(6)}


def test_hashes_of_paths_are_those_of_value_tables() -> None:
    message = b"<a xmlns='u'><b x='1'>t</b></a>"
    values = tamis.read_values([message]).rows.to_pylist()
    known = {row["path"]: row["path_hash"] for row in values}
    for path in ("/Q{u}a/Q{u}b", "/Q{u}a/Q{u}b/@x", "/Q{u}a/Q{u}b/text()"):
        (line,) = lines_of(f"{path} = 'v'")
        assert (line["path"], line["path_hash"]) == (path, known[path])


def test_long_constants_have_length_and_hash_as_values_do() -> None:
    text = "é" * 40
    (line,) = lines_of(f"/a = '{text}'")
    (row, _) = tamis.read_values([f"<a>{text}</a>".encode()]).rows.to_pylist()
    assert (line["length"], line["hash"]) == (row["length"], row["hash"]) != (None, None)


def test_uris_with_braces_do_not_make_other_paths_equal() -> None:
    hostile = b"<a xmlns='u}a/Q{u'/>"
    plain = b"<a xmlns='u'><a/></a>"
    paths = [{row["path"] for row in tamis.read_values([one]).rows.to_pylist()} for one in (hostile, plain)]
    assert not paths[0] & paths[1]


def test_exact_alternatives_hold_where_lxml_says_so() -> None:
    """Lines are evaluated by lxml one by one; without anchors, their conjunction is the query."""
    random = Random(31)
    checked = 0
    for _ in range(2):
        group = Group(random)
        trees = [etree.ElementTree(etree.fromstring(message)) for message in group.messages]
        texts = [query.text for query in group.queries]
        parts = tamis.decompose(texts, documents.NAMESPACES)
        lines: dict[int, list[Any]] = {}
        for row in parts.lines.to_pylist():
            lines.setdefault(row["query"], []).append(row)
        ways: dict[int, list[Any]] = {}
        for row in parts.alternatives.to_pylist():
            ways.setdefault(row["query"], []).append(row)
        for place, query in enumerate(group.queries):
            own = ways.get(place, [])
            if any(not way["exact"] or way["anchors"] for way in own) or query.oracle is None:
                continue
            given = [as_xpath(line) for line in lines.get(place, [])]
            tests = [test for test in given if test is not None]
            if len(tests) < len(given):
                continue
            holds = etree.XPath(f"boolean({query.oracle})", namespaces=documents.NAMESPACES)
            for tree in trees:
                found = [bool(tree.xpath(test, namespaces=PREFIXES)) for test in tests]
                joined = any(
                    all(found[at] for at in way["positive"]) and not any(found[at] for at in way["negative"])
                    for way in own
                )
                assert joined == holds(tree), (texts[place], etree.tostring(tree))
                checked += 1
    assert checked > 1000


PREFIXES = {f"n{number}": uri for number, uri in enumerate(dict.fromkeys(documents.NAMESPACES.values()))}


def as_xpath(line: Any) -> str | None:
    """A line as XPath 1.0 for lxml; None if it has a test that needs more."""
    path = line["path"]
    for prefix, uri in PREFIXES.items():
        path = path.replace(f"Q{{{uri}}}", f"{prefix}:")
    if line["subject"] == "position" or "*:" in path or "Q{" in path or line["operator"].startswith("norm"):
        return None
    if line["operator"] == "exists":
        return f"boolean({path})"
    if line["text"] is not None:
        quote = '"' if "'" in line["text"] else "'"
        return f"{path} {line['operator']} {quote}{line['text']}{quote}"
    number = line["number"]
    if number != number or abs(number) == float("inf"):
        return None
    return f"{path} {line['operator']} {number!r}"
