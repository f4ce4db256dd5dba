"""References to entities that were not read: refused, or left out of matches, string values and copies."""

import pytest
from lxml import etree

import tamis
from tamis import Limits, naive
from tests.helpers.reading import by_lxml

MESSAGE = b'<!DOCTYPE a SYSTEM "x.dtd"><a b="p&bar;q">x&foo;y</a>'

SKIP = Limits(internal_subset=True, skip_unread_entities=True)


def test_the_message_is_refused_with_its_position() -> None:
    index = tamis.Index()
    index.insert(1, "for $v in /a return $v")
    for refused in (lambda: index.match(MESSAGE), lambda: index.transform(MESSAGE)):
        with pytest.raises(tamis.ReadError, match="skip_unread_entities") as caught:
            refused()
        error = caught.value
        assert (error.code, error.line, error.column) == ("unread-entity", 1, 35)


def test_matches_values_and_copies_agree_without_the_references() -> None:
    queries = {
        1: "/a[. = 'xy'][@b = 'pq']",
        2: "for $v in /a return $v",
        3: "for $v in /a return <s>{ string($v) }</s>",
    }
    index = tamis.Index()
    for target, query in queries.items():
        index.insert(target, query)
    outputs = {one.target: one.payload for one in index.transform(MESSAGE, limits=SKIP)}
    assert outputs == {1: MESSAGE, 2: b'<a b="pq">xy</a>', 3: b"<s>xy</s>"}
    assert naive.naive_batch([queries[1]], [MESSAGE], limits=SKIP) == [[0]]
    ((copied, value),) = naive.naive_transform([queries[2], queries[3]], [MESSAGE], limits=SKIP)
    assert (copied, value) == ((outputs[2], None), (outputs[3], None))
    matches = index.match_batch([MESSAGE, b"<a/>", b"<"], limits=SKIP)
    assert matches["skipped_entities"].to_pylist() == [2, 0, 0]


@pytest.mark.parametrize(
    "message",
    [
        b"<!DOCTYPE a SYSTEM 'x'><a><b>1&e;2<!-- c --></b>&e;<b/></a>",
        b"<!DOCTYPE a SYSTEM 'x'><a xmlns='u'><p:b xmlns:p='v' p:c='&e;'>&e;<d/></p:b></a>",
        b"<!DOCTYPE a SYSTEM 'x'><a xmlns:p='u&e;v'><p:b p:c='1'><p:d/></p:b></a>",
        b"<!DOCTYPE a SYSTEM 'x'><a xmlns='u&e;v'><b c='1'><d xmlns=''/></b></a>",
        b"<!DOCTYPE a [<!ENTITY e SYSTEM 'y'>]><a><b>1&e;2</b></a>",
        b"<!DOCTYPE a [<!ENTITY e 'urn:u'>]><a xmlns:p='&e;'><p:b p:c='1'>2</p:b></a>",
    ],
)
def test_a_copy_is_well_formed_and_has_the_content_of_the_message(message: bytes) -> None:
    index = tamis.Index()
    index.insert(1, "for $v in /*/* return <r>{ $v }</r>")
    (output,) = index.transform(message, limits=SKIP)
    assert output.payload is not None
    parser = etree.XMLParser(no_network=True, load_dtd=False, resolve_entities=True)
    source = message.replace(b"&e;", b"urn:u" if b"'urn:u'" in message else b"")
    expected = [by_lxml(etree.tostring(child, with_tail=False)) for child in etree.fromstring(source, parser)]
    wrapped = etree.fromstring(b"<all>" + output.payload + b"</all>")
    assert [by_lxml(etree.tostring(child[0])) for child in wrapped] == expected
