"""Value tables: what lxml says of each element, attribute and text node."""

from dataclasses import replace
from random import Random
from typing import Any

from lxml import etree

import tamis
from tests.helpers import random_documents as documents

LONG = "å" * 33
"""66 bytes: its beginning of 64 bytes ends between two characters."""


def rows(messages: list[bytes], limits: tamis.Limits | None = None) -> list[dict[str, Any]]:
    values = tamis.read_values(messages, limits or tamis.Limits())
    assert values.errors.num_rows == 0
    return values.rows.to_pylist()


def name(qualified: str) -> str:
    parts = etree.QName(qualified)
    return f"Q{{{parts.namespace}}}{parts.localname}" if parts.namespace else parts.localname


def expected(message: bytes) -> list[dict[str, Any]]:
    """The same table by lxml."""
    root = etree.fromstring(message)
    nodes: Any = root.getroottree().xpath("/descendant::node()")
    # Equal texts are equal keys: only elements are looked up.
    numbers = {node: at for at, node in enumerate(nodes, 1) if not isinstance(node, str)}
    table: list[dict[str, Any]] = []
    for number, node in enumerate(nodes, 1):
        text = isinstance(node, str)
        if not text and not isinstance(node.tag, str):
            continue
        element = node.getparent() if text else node
        if text and node.is_tail:
            element = element.getparent()
        line = [*reversed(list(element.iterancestors())), element]
        path = "".join(f"/{name(step.tag)}" for step in line)
        elements = [numbers[step] for step in line]
        common = {"elements": elements, "node": number}
        if text:
            texts = int(element.xpath("count(text())"))
            table.append(common | {"path": f"{path}/text()", "kind": "text", "value": str(node), "of": texts})
            continue
        same = [one for one in [element, *element.itersiblings(preceding=True)] if one.tag == element.tag]
        others = [one for one in element.itersiblings(preceding=True) if isinstance(one.tag, str)]
        place = (len(same), len(others) + 1)
        value = element.xpath("string()")
        table.append(common | {"path": path, "kind": "element", "value": value, "positions": place})
        for key, attribute in element.attrib.items():
            table.append(
                common | {"path": f"{path}/@{name(key)}", "kind": "attribute", "value": str(attribute)}
            )
    return table


def test_rows_are_what_lxml_sees() -> None:
    random = Random(41)
    messages = [documents.serialise(random, documents.document(random)) for _ in range(150)]
    table = rows(messages)
    for at, message in enumerate(messages):
        own = [row for row in table if row["message"] == at]
        wanted = expected(message)
        assert [row["kind"] for row in own] == [row["kind"] for row in wanted]
        for row, want in zip(own, wanted, strict=True):
            assert row["path"] == want["path"]
            assert row["elements"] == want["elements"]
            assert row["node"] == want["node"]
            assert row["text"] == want["value"].encode()[:64].decode(errors="ignore")
            if row["kind"] == "element":
                assert (row["position"], row["element_position"]) == want["positions"]
            elif row["kind"] == "text":
                assert 1 <= row["position"] <= want["of"]


def test_texts_of_a_parent_are_counted() -> None:
    table = rows([b"<a>x<b/>y<!-- splits -->z</a>"])
    texts = [(row["text"], row["position"]) for row in table if row["kind"] == "text"]
    assert texts == [("x", 1), ("y", 2), ("z", 3)]


def test_numbers_follow_xpath() -> None:
    texts = ["011", " 11.0 ", "-0", "1e3", "", "x", "+1", ".5"]
    table = rows(["<r>{}</r>".format("".join(f"<a x='{text}'/>" for text in texts)).encode()])
    numbers = [row["number"] for row in table if row["kind"] == "attribute"]
    assert numbers == [11, 11, 0, None, None, None, None, 0.5]


def test_long_values_are_cut_at_a_character_and_hashed() -> None:
    table = rows([f"<a x='{LONG}'>{LONG}</a>".encode(), f"<b><c>{LONG}!</c></b>".encode(), b"<a>short</a>"])
    long = [row for row in table if row["message"] < 2]
    assert {row["text"] for row in long} == {"å" * 32}
    assert [row["length"] for row in long] == [66, 66, 66, 67, 67, 67]
    assert len({row["hash"] for row in long[:3]}) == len({row["hash"] for row in long[3:]}) == 1
    assert len({row["hash"] for row in long}) == 2
    assert all(len(row["hash"]) == 16 for row in long)
    short = [row for row in table if row["message"] == 2]
    assert {(row["length"], row["hash"]) for row in short} == {(None, None)}


def test_a_path_has_the_same_hash_in_every_batch() -> None:
    first = {
        row["path"]: row["path_hash"]
        for row in rows([b"<a xmlns='urn:u'><b/></a>", b"<a><b x='1'>t</b></a>"])
    }
    second = {row["path"]: row["path_hash"] for row in rows([b"<z><a/></z>", b"<a><b x='2'>u</b></a>"])}
    assert set(first) & set(second) == {"/a", "/a/b", "/a/b/@x", "/a/b/text()"}
    assert all(second[path] == number for path, number in first.items() if path in second)
    assert len({*first.values(), *second.values()}) == len({*first, *second})
    assert {"/Q{urn:u}a", "/Q{urn:u}a/Q{urn:u}b"} <= set(first)


def test_malformed_messages_are_errors() -> None:
    values = tamis.read_values([b"<a/>", b"<a>", None, b"<b/>"])
    assert values.rows["message"].to_pylist() == [0, 3]
    assert [(row["message"], row["code"]) for row in values.errors.to_pylist()] == [
        (1, "unclosed-element"),
        (2, "no-message"),
    ]


def test_a_message_with_too_many_bytes_of_rows_is_an_error() -> None:
    """Each row repeats its path: long names, many times below one another, take more than the message."""
    deep = "".join(f"<{'n' * 1000}{level}>" for level in range(100))
    ends = "".join(f"</{'n' * 1000}{level}>" for level in reversed(range(100)))
    message = f"{deep}{'<a/>' * 10_000}{ends}".encode()
    assert len(message) < 250_000
    values = tamis.read_values([b"<a/>", message, b"<b/>"])
    assert values.rows["message"].to_pylist() == [0, 2]
    (error,) = values.errors.to_pylist()
    assert (error["message"], error["code"]) == (1, "outputs-limit")
    assert error["value"] > error["limit"] == 256 << 20
    few = replace(tamis.Limits(), outputs=100)
    assert tamis.read_values([b"<a/>"], few).errors.num_rows == 0
    assert tamis.read_values([b"<a><b/></a>"], few).errors["code"].to_pylist() == ["outputs-limit"]


def test_an_empty_batch_has_its_columns() -> None:
    values = tamis.read_values([])
    assert values.rows.num_rows == 0
    assert values.rows.schema.names[:4] == ["message", "node", "kind", "path"]
