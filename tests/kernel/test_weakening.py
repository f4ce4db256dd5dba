"""What decomposing makes of a query must be weaker: every message that the query matches satisfies it."""

from collections.abc import Sequence
from random import Random

import pytest

import tamis
from tests.helpers import random_documents as documents
from tests.helpers import random_queries, random_values, random_xpath2
from tests.helpers.engines import answer, loaded, table
from tests.helpers.random_runs import SEED

ROUNDS = 4


def paths_with_tests(random: Random, messages: Sequence[documents.Element]) -> list[str]:
    """Around elements of the messages."""
    witnesses = [element for root in messages for element in (root, *root.descendants())]
    names = random_queries.PRODUCTIONS * 2
    return [random_queries.query(random, random.choice(witnesses), name).text for name in names]


def values(random: Random, messages: Sequence[documents.Element]) -> list[str]:
    """Of all of XPath 1.0."""
    return [random_values.query(random, name).text for name in random_values.PRODUCTIONS * 6]


def xpath2(random: Random, messages: Sequence[documents.Element]) -> list[str]:
    """Of what XPath 2.0 adds."""
    return [random_xpath2.query(random, name).text for name in random_xpath2.PRODUCTIONS * 6]


@pytest.mark.parametrize("generate", [paths_with_tests, values, xpath2])
def test_a_query_implies_its_weakening(generate) -> None:  # type: ignore[no-untyped-def]
    random = Random(SEED)
    implied = strict = 0
    for _ in range(ROUNDS):
        roots = [documents.document(random) for _ in range(16)]
        messages = [documents.serialise(random, root) for root in roots]
        queries = generate(random, roots)
        weaker = [tamis.weaken(query, documents.NAMESPACES).text for query in queries]
        matching = answer(loaded(queries, documents.NAMESPACES), messages)
        index = tamis.Index()
        # A weakening may be longer than queries may be.
        refused = set(index.load(table(weaker)).column("row").to_pylist())
        satisfied = [passed | refused for passed in answer(index, messages)]
        for message, matched, passed in zip(messages, matching, satisfied, strict=True):
            wrong = [(queries[place], weaker[place]) for place in matched - passed]
            assert not wrong, f"not weaker (seed {SEED}) on {message!r}: {wrong}"
            implied += len(matched)
            strict += len(queries) - len(passed)
    # It says something: both matches and messages that it excludes are many.
    assert min(implied, strict) >= 1_000


SELECTIVE = {
    "count(//item/tag) > 2": "//item/tag",
    "normalize-space(//p) = 'x'": "//p[normalize-space(.)='x']",
    "//a[normalize-space() = ('x', 'y')]": "//a[normalize-space(.)='x'] or //a[normalize-space(.)='y']",
    "//tag = ('a', 'b')": "//tag='a' or //tag='b'",
    "//a[matches(@k, '^(EUR|USD)$')]": "//a/@k='EUR' or //a/@k='USD'",
    "//item/tag[. = 'sale']/../price > 50": "//item/price>50 and //item/tag='sale'",
    "//price[../tag = 'sale']": "//price and //tag='sale'",
    "//price[ancestor::order/@cur = 'EUR']": "//order/@cur='EUR' and //price",
    "//b/ancestor::a[@x = '1']": "//a/@x='1' and //a//b",
    "/r/b/preceding-sibling::c[1]/@x = '1'": "/r/b and /r/c/@x='1'",
    "(//a | //b)[1] = 'x'": "//a='x' or //b='x'",
    "//*[local-name() = 'a'][namespace-uri() = 'u']/@k = 'x'": "//Q{u}a/@k='x'",
    "max(//a/@n) > 10": "//a/@n>10",
    "some $x in //a satisfies $x/@k = 'x'": "//a/@k='x'",
    "//a/normalize-space(@k) = 'x'": "//a/@k[normalize-space(.)='x']",
    "//a[string-length(@k) > 3 and @z = '1']": "//a/@k and //a/@z='1'",
    "not(//a[count(b) > 2])": "true()",
}


@pytest.mark.parametrize("query", SELECTIVE)
def test_what_is_necessary_has_the_values_of_the_query(query: str) -> None:
    assert tamis.weaken(query).text == SELECTIVE[query]


REASONS = {
    "//a[@x = 1][b]": None,
    "//a[count(b) > 1]": "a value is computed on the message",
    "contains(//a, 'x')": "a function of strings takes the first node only",
    "//a[not(b)]": "what is negated may be at another element",
    "//a[contains(., 'x')][2]": "a function of strings takes the first node only",
    "//@a[. = 1][. < 2]": "an attribute or a text node has predicates",
}


@pytest.mark.parametrize("query", REASONS)
def test_what_is_inexact_has_a_reason(query: str) -> None:
    for alternative in tamis.decompose([query]).alternatives.to_pylist():
        assert (alternative["exact"], alternative["reason"]) == (REASONS[query] is None, REASONS[query])


def test_what_is_computed_is_explained_part_by_part() -> None:
    index = tamis.Index()
    query = "/r[@x = '1']/a[count(b) * 2 > 3][normalize-space(c) = 'y']"
    index.insert(1, query)
    message = b"<r x='1'><a><b/><c>z</c></a><a><b/><b/><c> y </c></a></r>"
    explanation = index.explain(message, query)
    values = [(part.text, part.value, part.at is not None) for part in explanation.evaluated]
    assert values[:3] == [
        ("c", "1 node: 'z'", True),
        ("normalize-space(c)", "'z'", True),
        ("normalize-space(c)='y'", "false", True),
    ]
    assert values[-2:] == [("count(b) * 2", "4", True), ("count(b) * 2>3", "true", True)]
    (way,) = explanation.alternatives
    assert way.inexact == "a value is computed on the message"
    plan = explanation.render_plan(message)
    assert "count(b) * 2>3  is true  at line 1: <a>" in plan
    assert "access test" in plan


def test_what_a_position_counts() -> None:
    parts = tamis.decompose(["//a/b[c][@x = 1][2]", "//a[b]"])
    counting, plain = parts.alternatives.to_pylist()
    names = {row["step"]: row["name"] for row in parts.steps.to_pylist() if row["query"] == 0}
    rows = [row for row in parts.lines.to_pylist() if row["query"] == 0]
    lines = {row["line"]: (names[row["step"]], row["subject"]) for row in rows}
    assert (names[counting["counted"]], counting["position"]) == ("b", 2)
    assert {lines[line] for line in counting["counted_lines"]} == {("b", "attribute"), ("c", "element")}
    assert plain["counted"] is plain["position"] is plain["counted_lines"] is None
