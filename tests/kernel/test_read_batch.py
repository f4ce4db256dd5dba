"""The tables that `read_batch` gives: the same document that lxml sees."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

import tamis
from tests.helpers import random_documents as documents


def kind(node: Any) -> str:
    """The kind of lxml's node, as tamis names it."""
    if isinstance(node, str):
        return "text"
    if node.tag is etree.Comment:
        return "comment"
    return "instruction" if node.tag is etree.ProcessingInstruction else "element"


def test_nodes_and_attributes_are_those_of_lxml() -> None:
    random = Random(11)
    messages = [documents.serialise(random, documents.document(random)) for _ in range(200)]
    batch = tamis.read_batch(messages)
    assert batch.errors.num_rows == 0
    nodes = batch.nodes.to_pylist()
    attributes = batch.attributes.to_pylist()
    for place, message in enumerate(messages):
        tree = etree.ElementTree(etree.fromstring(message))
        expected = tree.xpath("/descendant::node()")
        assert isinstance(expected, list)
        own = [row for row in nodes if row["message"] == place]
        assert [row["kind"] for row in own] == [kind(node) for node in expected]
        assert [row["node"] for row in own] == list(range(1, len(own) + 1))
        values: list[Any] = []
        for row, node in zip(own, expected, strict=True):
            if row["kind"] == "element":
                assert isinstance(node, etree._Element)
                name = etree.QName(node)
                assert (row["namespace"], row["name"]) == (name.namespace or "", name.localname)
                assert row["depth"] == len(list(node.iterancestors())) + 1
                below = node.xpath("descendant::node()")
                assert isinstance(below, list)
                assert row["end"] == row["node"] + 1 + len(below)
                for key, value in node.attrib.items():
                    name = etree.QName(key)
                    values.append((row["node"], name.namespace or "", name.localname, value))
            elif row["kind"] == "text":
                assert row["value"] == node
        keys = ("node", "namespace", "name", "value")
        got = [tuple(row[key] for key in keys) for row in attributes if row["message"] == place]
        assert sorted(got) == sorted(values)


def test_parents_depths_and_spans_agree() -> None:
    random = Random(12)
    messages = [documents.serialise(random, documents.document(random)) for _ in range(50)]
    rows = tamis.read_batch(messages).nodes.to_pylist()
    known = {(row["message"], row["node"]): row for row in rows}
    for row in rows:
        parent = known.get((row["message"], row["parent"]))
        if parent is None:
            assert (row["parent"], row["depth"]) == (0, 1)
        else:
            assert parent["kind"] == "element"
            assert row["depth"] == parent["depth"] + 1
            assert parent["node"] < row["node"] < row["end"] <= parent["end"]
            assert parent["span_start"] < row["span_start"] <= row["span_end"] < parent["span_end"]
        if row["kind"] == "element":
            span = messages[row["message"]][row["span_start"] : row["span_end"]]
            assert span[:1] + span[-1:] == b"<>"


def test_tag_paths_lead_from_the_root_down() -> None:
    batch = tamis.read_batch([b"<a><b><c/></b><b/></a>", b"<a xmlns='u'><b/></a>", b"<a><b/></a>"])
    paths = {row["tag_path"]: row for row in batch.tag_paths.to_pylist()}

    def text(path: int | None) -> str:
        if path is None:
            return ""
        row = paths[path]
        return f"{text(row['parent'])}/{{{row['namespace']}}}{row['name']}"

    element_paths = [text(row["tag_path"]) for row in batch.nodes.to_pylist()]
    first = ["/{}a", "/{}a/{}b", "/{}a/{}b/{}c", "/{}a/{}b"]
    assert element_paths == [*first, "/{u}a", "/{u}a/{u}b", "/{}a", "/{}a/{}b"]
    assert len(paths) == 5


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()],
)
def test_messages_come_as_any_arrow_bytes(kind: "pa.DataType") -> None:
    array = pa.array(["<a/>", "<b>"], pa.string()).cast(kind)
    for messages in (array, pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        batch = tamis.read_batch(messages)
        assert batch.nodes["name"].to_pylist() == ["a"]
        assert batch.errors["message"].to_pylist() == [1]


def test_other_columns_are_no_messages() -> None:
    with pytest.raises(TypeError, match="bytes or strings"):
        tamis.read_batch(pa.array([1, 2]))


def test_an_empty_batch_has_its_columns() -> None:
    batch = tamis.read_batch([])
    assert batch.nodes.num_rows == batch.attributes.num_rows == batch.errors.num_rows == 0
    assert batch.nodes.schema.names[:3] == ["message", "node", "kind"]


def test_utf16_is_read_and_spans_count_in_utf8() -> None:
    (row,) = tamis.read_batch(["<é/>".encode("utf-16")]).nodes.to_pylist()
    assert (row["name"], row["span_start"], row["span_end"]) == ("é", 0, len("<é/>".encode()))


def test_the_elements_of_a_batch_are_counted() -> None:
    from tamis import engine

    assert engine.read_all([b"<a><b/></a>", b"<a>", b"<a/>"]) == 3
