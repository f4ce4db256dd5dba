"""Degrees of a match beyond the query: the nodes selected, and the ways to them."""

from itertools import product
from random import Random
from typing import Any

from lxml import etree

import tamis
from tests.helpers import random_documents as documents
from tests.helpers import random_queries as queries

SEED = 20260


def select(tree: etree._ElementTree, path: str) -> list[Any]:
    """The nodes that lxml selects."""
    selected = tree.xpath(path, namespaces=documents.NAMESPACES)
    assert isinstance(selected, list)
    return selected


def node_numbers(tree: etree._ElementTree) -> dict[str, int]:
    """Where each element stands among all nodes in pre-order, by its path in lxml's words."""
    numbers = {}
    for number, node in enumerate(select(tree, "/descendant::node()"), start=1):
        if isinstance(node, etree._Element) and isinstance(node.tag, str):
            numbers[tree.getpath(node)] = number
    return numbers


def test_elements_are_those_that_lxml_selects() -> None:
    random = Random(SEED)
    compared = 0
    for _ in range(12):
        original = documents.document(random)
        roots = [original, *(documents.variant(random, original) for _ in range(5))]
        messages = [documents.serialise(random, root) for root in roots]
        index = tamis.Index()
        asked: list[queries.RandomQuery] = []
        while len(asked) < 60:
            query = queries.query(random, random.choice([original, *original.descendants()]), "top-path")
            tops = {name for name in query.productions if name.startswith("top-")}
            # A single path: what each operand of `and` selects, lxml cannot be asked in one go.
            if tops == {"top-path"}:
                index.insert(len(asked), query.text, namespaces=documents.NAMESPACES)
                asked.append(query)
        found = index.match_elements(messages)
        assert found.errors.num_rows == 0
        got: dict[tuple[int, int], list[int]] = {}
        for row, targets in zip(found.rows.to_pylist(), index.targets(found.rows).to_pylist(), strict=True):
            for target in targets or ():
                got.setdefault((row["message"], target), []).append(row["node"])
                if row["kind"] == "element":
                    span = messages[row["message"]][row["span_start"] : row["span_end"]]
                    assert span.startswith(b"<")
                    assert span.endswith(b">")
        for (place, message), (target, query) in product(enumerate(messages), enumerate(asked)):
            tree = etree.ElementTree(etree.fromstring(message))
            numbers = node_numbers(tree)
            selected = select(tree, query.oracle)
            # lxml gives attributes and text as strings, which have no place in the tree.
            if all(isinstance(node, etree._Element) for node in selected):
                expected = [numbers[tree.getpath(node)] for node in selected]
                assert got.get((place, target), []) == expected, (query.text, message)
                compared += len(expected)
    assert compared > 1000


def test_a_limit_of_one_gives_the_first() -> None:
    index = tamis.Index()
    index.insert(7, "//b")
    found = index.match_elements([b"<a><b/><b/><b/></a>", b"<a>"], limit=1)
    assert [(row["message"], row["node"]) for row in found.rows.to_pylist()] == [(0, 2)]
    assert found.errors["code"].to_pylist() == ["unclosed-element"]


def test_attributes_and_text_are_nodes_too() -> None:
    index = tamis.Index()
    index.insert(1, "//@y")
    index.insert(2, "//b/text()")
    found = index.match_elements([b"<a x='1' y='2'><b>t<!--c-->u</b></a>"])
    rows = {
        (targets[0], row["node"], row["kind"], row["attribute"])
        for row, targets in zip(found.rows.to_pylist(), index.targets(found.rows).to_pylist(), strict=True)
        if targets
    }
    assert rows == {(1, 1, "attribute", 1), (2, 3, "text", None), (2, 5, "text", None)}


def bindings(query: str, message: bytes, limit: int = 1000) -> list[list[int]]:
    index = tamis.Index()
    index.insert(1, query)
    return [row["nodes"] for row in index.match_bindings([message], limit=limit).rows.to_pylist()]


def test_bindings_have_one_node_per_step() -> None:
    message = b"<a><b><c/></b><b><d><c/></d></b></a>"
    assert bindings("/a/b/c", message) == [[1, 2, 3]]
    assert bindings("//b//c", message) == [[2, 3], [4, 6]]
    assert bindings("/a//c[.]", message) == [[1, 3], [1, 6]]


def test_every_way_is_a_binding() -> None:
    message = b"<a><a><a/></a></a>"
    assert sorted(bindings("//a//a", message)) == [[1, 2], [1, 3], [2, 3]]
    assert len(bindings("//a//a", message, limit=2)) == 2


def test_bindings_of_both_operands() -> None:
    message = b"<a><b/><c/></a>"
    assert sorted(bindings("//b or //c", message)) == [[2], [3]]
    assert sorted(bindings("//b and /a/c", message)) == [[1, 3], [2]]
    assert sorted(bindings("//b and not(//d)", message)) == [[2]]


def test_predicates_bind_nothing() -> None:
    message = b"<a><b><c/></b><b/></a>"
    assert bindings("/a/b[c]", message) == [[1, 2]]
