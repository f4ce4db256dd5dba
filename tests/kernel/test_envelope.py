"""`$envelope` in queries: a document of its own, indexed, in filters and transformations."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import tamis
from tamis import Envelope
from tests.helpers.engines import ENGINES, TRANSFORMERS

MESSAGE = b"<order><item price='7'>pen</item></order>"
ENVELOPE = Envelope(
    "feed", "orders", datetime(2026, 1, 31, 12, 30, tzinfo=UTC), {"priority": "high", "region": "eu"}
)


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("$envelope/header[@name = 'priority'] = 'high'", True),
        ("$envelope/source = 'feed' and $envelope/topic = 'orders'", True),
        ("xs:dateTime($envelope/received) = xs:dateTime('2026-01-31T12:30:00Z')", True),
        ("xs:dateTime($envelope/received) < xs:dateTime('2026-01-31T12:30:00Z')", False),
        ("//item[@price > 5][$envelope/header[@name = 'region'] = 'eu']", True),
        # It is a document of its own: nothing leads there from the message, or back.
        ("//header", False),
        ("/*[header]", False),
        ("//*[@name]", False),
        ("//*:header", False),
        ("count(/*) = 1 and count(//*) = 2 and count(//node()) = 3", True),
        ("//item/following::*", False),
        ("//node()[. = 'feed']", False),
        ("string(/) = 'pen'", True),
        ("$envelope//item", False),
        ("$envelope/..", False),
        ("$envelope/header/ancestor::node()[order]", False),
        ("$envelope/source/preceding::node()", False),
        ("count($envelope/header/ancestor::node()) = 1", True),
        # Like the document node, it has no name.
        ("name($envelope) = '' and local-name($envelope) = '' and namespace-uri($envelope) = ''", True),
        ("$envelope/self::*", False),
        ("$envelope/self::node()", True),
        ("$envelope/header/ancestor::*", False),
        ("$envelope/header/parent::*", False),
        ("$envelope/header/..", True),
        ("some $h in $envelope/header satisfies $h = //item/@x", False),
        ("some $h in $envelope/header satisfies ($h/@name = 'region' and $h = 'eu')", True),
        # A variable of this name hides it.
        ("some $envelope in //item satisfies $envelope = 'pen'", True),
    ],
)
def test_the_envelope_is_a_document_of_its_own(query: str, matches: bool) -> None:
    messages = tamis.with_envelopes([MESSAGE], [ENVELOPE])
    for name, engine in ENGINES.items():
        assert engine([query], messages, {}) == [{0} if matches else set()], name  # type: ignore[arg-type]
    index = tamis.Index()
    index.insert(1, query)
    assert index.match(MESSAGE, envelope=ENVELOPE) == ([1] if matches else [])
    assert index.explain(MESSAGE, query, envelope=ENVELOPE).matches == matches


def test_names_in_the_envelope_have_no_namespace() -> None:
    """A default namespace is that of the message."""
    message = b"<order xmlns='urn:o'><header/></order>"
    queries = [
        "/order[header][$envelope/header[@name = 'priority'] = 'high']",
        "$envelope[header]/header[@name = 'region'][. = 'eu'][/order]",
        "$envelope/(header | other)[@name = 'region']",
    ]
    messages = tamis.with_envelopes([message], [ENVELOPE])
    for name, engine in ENGINES.items():
        assert engine(queries, messages, {"": "urn:o"}) == [{0, 1, 2}], name  # type: ignore[arg-type]


def test_transformations_take_from_the_envelope() -> None:
    queries = [
        "for $h in $envelope/header return <h>{ $h/@name }{ $h/text() }</h>",
        "for $i in //item where $envelope/source = 'feed' return <r>{ $i/text() }</r>",
        "for $i in //item where $envelope/source = 'other' return <r>{ $i/text() }</r>",
        "for $i in //item, $h in $envelope/header order by $h return <r>{ $i/@price }{ string($h) }</r>",
        "for $h in $envelope//header return $h",
        "for $i in //* return <r>{ $i/@price }</r>",
    ]
    headers = {"priority": "high", "region": "<&\"xmlns='x'"}
    given = Envelope("feed", None, None, headers)
    messages: pa.StructArray = tamis.with_envelopes([MESSAGE], [given])
    expected = [
        b'<h name="priority">high</h><h name="region">&lt;&amp;"xmlns=\'x\'</h>',
        b"<r>pen</r>",
        None,
        b'<r price="7">&lt;&amp;"xmlns=\'x\'</r><r price="7">high</r>',
        b'<header name="priority">high</header><header name="region">&lt;&amp;&quot;xmlns=\'x\'</header>',
        b'<r/><r price="7"/>',
    ]
    rows = {}
    for name in ("network", "network-without-cache", "network-of-many-segments"):
        index = tamis.Index(cache_bytes=0) if name == "network-without-cache" else tamis.Index()
        for place, text in enumerate(queries):
            index.insert(place, text)
        made = {one.target: one.payload for one in index.transform(MESSAGE, envelope=given)}
        rows[name] = [made.get(place) for place in range(len(queries))]
    rows["naive"] = [output for output, _ in TRANSFORMERS["naive"](queries, messages, {})[0]]  # type: ignore[arg-type]
    for name, outputs in rows.items():
        assert outputs == expected, name


def test_nodes_of_the_envelope_are_not_listed_as_nodes_of_the_message() -> None:
    index = tamis.Index()
    index.insert(1, "//item | $envelope/header")
    index.insert(2, "$envelope/header")
    messages = tamis.with_envelopes([MESSAGE], [ENVELOPE])
    found = index.match_elements(messages).rows.to_pylist()
    assert [(row["kind"], row["span_start"]) for row in found] == [("element", 7)]
    assert index.match_bindings(messages).rows.num_rows == 1
    explained = index.explain(MESSAGE, "$envelope/header", envelope=ENVELOPE)
    assert (explained.matches, explained.nodes) == (True, ())


def test_headers_are_indexed() -> None:
    """Of many queries on a header only those with its value are candidates."""
    index = tamis.Index()
    for number in range(1_000):
        index.insert(number, f"$envelope/header[@name = 'customer'] = 'c{number}' and //item")
    # The sample tells how often each condition holds, for those of the envelope too.
    for number in range(50):
        index.match(MESSAGE, envelope=Envelope(headers={"customer": f"c{number}"}))
    index.merge()
    envelopes = [Envelope(headers={"customer": "c7"}), Envelope(headers={"customer": "x"}), None]
    batch = index.match_batch(tamis.with_envelopes([MESSAGE] * 3, envelopes))
    assert index.targets(batch).to_pylist() == [[7], [], []]
    assert batch["candidates"].to_pylist() == [1, 0, 0]
    assert index.asks_envelope
    assert tamis.weaken("$envelope/header[@name = 'a'] = 'b'").text.startswith("$envelope/header")
    plain = tamis.Index()
    plain.insert(1, "//item")
    assert not plain.asks_envelope


def test_envelopes_are_a_column_beside_the_messages() -> None:
    index = tamis.Index()
    for number in range(4):
        index.insert(number, f"$envelope/header[@name = 'n'] = '{number}' and /m{number}")
    index.insert(9, "not($envelope)")
    texts = [f"<m{number}/>" for number in range(4)]
    envelopes = [Envelope(headers={"n": f"{number}", "x": ""}) for number in range(3)]
    messages = tamis.with_envelopes(pa.array(texts, pa.large_string()), [*envelopes, None])
    for start in range(4):
        batch = index.match_batch(messages.slice(start))
        assert index.targets(batch).to_pylist() == [[0], [1], [2], [9]][start:]
    again = messages.take([2, 0])
    assert index.targets(index.match_batch(again)).to_pylist() == [[2], [0]]
    null = tamis.with_envelopes([None], [Envelope()])
    assert index.match_batch(null)["code"].to_pylist() == ["no-message"]
    names = ["message", "source", "topic", "received", "headers"]
    columns = [messages.field(place) for place in range(5)]
    for place, name in enumerate(names):
        for bad in (pa.array([1] * 4), pa.array(texts).dictionary_encode()):
            wrong = [*columns[:place], bad, *columns[place + 1 :]]
            with pytest.raises(TypeError, match="messages are bytes or strings"):
                index.match_batch(pa.StructArray.from_arrays(wrong, names))
        fewer = [one for one in names if one != name]
        with pytest.raises(TypeError, match="messages are bytes or strings"):
            index.match_batch(pa.StructArray.from_arrays(columns[: len(fewer)], fewer))
