"""Hostile input: each attack is refused with its code in bounded time, and other messages are unaffected."""

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import pytest

import tamis
from tamis import Limits, naive
from tests.helpers.hostile_messages import HARMLESS, MESSAGES, SUBSET, nested_entities

GOOD = b"<good><a x='1'/></good>"

# Generous: the machine may be busy. An attack that works takes minutes or does not end.
SECONDS = 5.0

LIMIT_CODES = {attack.code for attack in MESSAGES.values() if attack.code.endswith("-limit")}


@pytest.fixture(autouse=True)
def bounded_time() -> Iterator[None]:
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < SECONDS


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    attack = MESSAGES[name]
    message = attack.make()
    batch = tamis.read_batch([GOOD, message, GOOD], attack.limits)
    (error,) = batch.errors.to_pylist()
    assert (error["message"], error["code"]) == (1, attack.code), error
    assert 0 <= error["offset"] <= len(message)
    assert error["line"] >= 1
    assert error["column"] >= 1
    assert set(batch.nodes["message"].to_pylist()) == {0, 2}
    if attack.code in LIMIT_CODES:
        assert error["value"] > error["limit"] > 0
    else:
        assert error["limit"] is None


def test_every_limit_is_attacked() -> None:
    # What queries may cost: test_work_limit.py, test_transform_hostile.py and test_data_work.py.
    switches = {"internal_subset", "skip_unread_entities"}
    fields = set(Limits.__dataclass_fields__) - switches - {"bindings", "tuples", "output", "outputs", "work"}
    assert {f"{field}-limit" for field in fields} == LIMIT_CODES


def limited(field: str, limit: int) -> Limits:
    return Limits(**(asdict(Limits()) | {field: limit}))


@pytest.mark.parametrize("field", ["document", "depth", "attributes", "namespaces", "name", "text"])
def test_a_limit_allows_what_it_says_and_no_more(field: str) -> None:
    exact = {
        "document": b"<a>1</a>",
        "depth": b"<a>" * 8 + b"</a>" * 8,
        "attributes": b"<a " + b" ".join(b"a%d=''" % n for n in range(8)) + b"/>",
        "namespaces": b"<a " + b" ".join(b"xmlns:a%d='u'" % n for n in range(8)) + b"/>",
        "name": b"<abcdefgh/>",
        "text": b"<a>12345678</a>",
    }[field]
    assert tamis.read_batch([exact], limited(field, 8)).errors.num_rows == 0
    (error,) = tamis.read_batch([exact], limited(field, 7)).errors.to_pylist()
    assert (error["code"], error["limit"]) == (f"{field}-limit", 7)
    assert error["value"] >= 8


def test_external_identifiers_are_never_fetched() -> None:
    message = b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/never.dtd"><a/>'
    assert tamis.read_batch([message]).errors.num_rows == 0
    entity = b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>'
    batch = tamis.read_batch([entity], replace(SUBSET, skip_unread_entities=True))
    assert batch.errors.num_rows == 0
    assert [row for row in batch.nodes.to_pylist() if row["kind"] == "text"] == []


def test_harmless_messages_that_resemble_attacks_are_read() -> None:
    assert tamis.read_batch(HARMLESS, SUBSET).errors.num_rows == 0


@pytest.mark.parametrize(
    "piece", [b"<", b"&", b"<![CDATA[", b"<!--", b"<?a", b"<a b='", b"]]", b"&#", b"<a ", b"'"]
)
def test_a_token_repeated_for_ever(piece: bytes) -> None:
    count = 1_000_000 // len(piece)
    for message in (piece * count, b"<a>" + piece * count, b"<a>" + piece * count + b"</a>"):
        tamis.read_batch([message])


QUERIES: dict[str, tuple[str, Callable[[], str]]] = {
    "nesting bomb": ("depth-limit", lambda: "a" + "[b" * 10_000 + "]" * 10_000),
    "parentheses": ("depth-limit", lambda: "(" * 10_000 + "a" + ")" * 10_000),
    "not(not(…": ("depth-limit", lambda: "not(" * 5_000 + "a" + ")" * 5_000),
    "operator bomb": ("nodes-limit", lambda: " or ".join(["a"] * 10_000)),
    "many steps": ("nodes-limit", lambda: "/a" * 10_000),
    "many predicates": ("nodes-limit", lambda: "a" + "[b]" * 10_000),
    "huge literal": ("literal-limit", lambda: f"a = '{'x' * 20_000}'"),
    "huge query": ("text-limit", lambda: "/" + "a" * 100_000),
    "minus signs": ("", lambda: f"a = {'-' * 10_001}1"),
    "unclosed literal": ("unterminated-literal", lambda: "a = '" + "x" * 1000),
    "nothing": ("empty", lambda: ""),
}


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str) -> None:
    code, make = QUERIES[name]
    text = make()
    if not code:
        tamis.check(text)
        return
    with pytest.raises(tamis.QueryError) as caught:
        tamis.check(text)
    assert caught.value.code == code
    assert 0 <= caught.value.offset <= len(text.encode())
    if code.endswith("-limit"):
        assert caught.value.value is not None
        assert caught.value.limit is not None
        assert caught.value.value > caught.value.limit


def test_memory_of_a_refused_bomb_is_bounded() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tamis.read_batch([nested_entities(30, 30)], SUBSET)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10, "KiB"


# Small messages that a careless evaluator needs hours for.
REPETITIVE = {
    "deep": b"<a>" * 255 + b"</a>" * 255,
    "wide": b"<r>" + b"<a x='1'><b/><b>t</b></a>" * 5_000 + b"</r>",
    "comb": b"<r>" + (b"<a>" * 50 + b"<b/>" + b"</a>" * 50) * 300 + b"</r>",
}

EXPLOSIVE = (
    "//a" * 30,
    "//*" * 30,
    "//a[.//a[.//a[.//a[.//a[.//a]]]]]/b",
    "//a[not(.//a[not(.//a[not(.//a)])])]",
    "//*[.//*[.//*[.//*[.//zz]]]]",
    "//a//a//a//a//a//a//a//b[@zz]",
    "//*[2]//*[3]//*[1]//text()",
    "//*[contains(.//*, 'zzz')]",
    "//a[//a[//a[//a[//zz]]]]",
    "//a[//a[//b != '']]",
    "//b[not(//a[not(//a[//b != ''])])]",
    "//*[. = 'x']//*[. = 'y']//*[. < 3]",
    "//*//*//*//*//*[.//*//*//*//*[zz]]",
    "//a[.//b = 'q' or .//b != 't']//a[.//b = 'z']",
)


@pytest.mark.parametrize("name", REPETITIVE)
@pytest.mark.parametrize("query", EXPLOSIVE)
def test_predicates_do_not_blow_up_on_repetitive_messages(query: str, name: str) -> None:
    index = tamis.Index()
    index.insert(1, query)
    index.match(REPETITIVE[name])
    index.match_elements([REPETITIVE[name]], limit=5)
    index.match_bindings([REPETITIVE[name]], limit=5)
    index.explain(REPETITIVE[name], query)


def nested(inside: bytes) -> bytes:
    return b"<a>" * 250 + inside + b"</a>" * 250


# Walks that must not be repeated from every context. None of their conditions can be decided without a walk.
WALKS = {
    "the first of many nodes": ("//a[contains(.//*//*, 'zzz')]", nested(b"<b/>" * 100_000)),
    "the first of no nodes": ("//a[contains(.//*/b//c, 'zzz')]", nested(b"<b/>" * 50_000 + b"<c/>")),
    "a later first node": (
        "//a[contains(.//b/c//*, 'zzz')]",
        nested(b"<b/>" * 9_000 + b"<b><c><b/></c></b>"),
    ),
    "steps and elements": ("//*" * 250 + "[contains(., 'zz')]", nested(b"<b/>" * 50_000)),
    "steps between others": ("//a/a" * 60 + "//b[contains(., 'z')]", nested(b"<a><a><b/></a></a>" * 20_000)),
    "parents": ("//a[not(b)][2]", b"<r>" + b"<p><a/></p>" * 400_000 + b"</r>"),
    "parents in a predicate": (
        "//a[.//b[not(@p)][2]/@q]",
        nested(b"<p><b/></p>" * 40_000 + b"<b p='1' q='1'/>"),
    ),
    "parents, again and again": ("//*[not(x)][1]" * 100 + "[contains(., 'z')]", nested(b"<b/>" * 20_000)),
    "predicates": (
        "//*//*" + "".join(f"[not(contains(.//*//*, '{n}'))]" for n in range(100)) + "[contains(., 'z')]",
        b"<r>" + b"<b><c><d/></c></b>" * 5_000 + b"</r>",
    ),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_not_repeated_from_every_context(name: str) -> None:
    query, message = WALKS[name]
    index = tamis.Index()
    index.insert(1, query)
    assert index.match(message) == []


def test_ways_that_lead_nowhere_are_not_walked_again() -> None:
    dead, alive = b"<a>" * 240 + b"</a>" * 240, b"<a>" * 8 + b"<b/>" + b"</a>" * 8
    index = tamis.Index()
    index.insert(1, "//a" * 8 + "//b")
    for limit in (1, 1000):
        (row,) = index.match_bindings([b"<r>" + dead + alive + dead + b"</r>"], limit=limit).rows.to_pylist()
        assert row["nodes"] == [*range(242, 251)]


def test_the_way_to_a_first_node_counts_before_others() -> None:
    # What contains() looks at is the first <b>, and the walk comes to the second one earlier.
    index = tamis.Index()
    index.insert(1, "contains(//a/b, 'x')")
    rows = index.match_bindings([b"<r><a><a><b>x</b></a><b/></a></r>"], limit=1).rows.to_pylist()
    assert [row["nodes"] for row in rows] == [[3, 4]]


@pytest.mark.parametrize("query", EXPLOSIVE)
def test_nor_for_the_slow_evaluator(query: str) -> None:
    naive.naive_batch([query], [REPETITIVE["deep"]])
