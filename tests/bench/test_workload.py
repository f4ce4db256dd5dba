"""The generators: their output follows the DTD, fits together, and is reproducible by seed."""

import re
from collections import Counter
from io import StringIO
from itertools import islice
from typing import Any

import pytest
from lxml import etree

import tamis
from benches.respelling import respelled
from tamis.workload import (
    DocumentOptions,
    Dtd,
    Mix,
    Profile,
    QueryOptions,
    StockOptions,
    TransformationOptions,
    generate_documents,
    generate_queries,
    generate_transformations,
    stock_messages,
    stock_subscriptions,
)
from tamis.workload.paths import Step, rewrite
from tests.helpers.engines import answer, loaded

STEP = re.compile(r"(//?)([^/\[]+)")


def name(of: str, occurrence: str = "") -> Any:
    return ("name", occurrence, of)


def attribute(kind: str = "CDATA", default: str = "implied", value: str | None = None, *values: str) -> Any:
    return {"type": kind, "values": list(values), "default": default, "value": value}


BOOKS = Dtd.from_dict(
    {
        "elements": {
            "shop": {
                "content": "children",
                "model": ("seq", "", [name("name"), name("shelf", "+")]),
                "children": {"name": (1, 1), "shelf": (1, None)},
            },
            "shelf": {
                "content": "children",
                "model": ("choice", "*", [name("book"), name("shelf")]),
                "children": {"book": (0, None), "shelf": (0, None)},
                "attributes": {
                    "room": attribute(),
                    "side": attribute("enumeration", "value", "left", "left", "right"),
                },
            },
            "book": {
                "content": "children",
                "model": ("seq", "", [name("title"), ("choice", "", [name("author", "+"), name("editor")])]),
                "children": {"title": (1, 1), "author": (0, None), "editor": (0, 1)},
                "attributes": {
                    "id": attribute("ID", "required"),
                    "unit": attribute("CDATA", "fixed", "each"),
                },
            },
            "name": {"content": "mixed", "model": ("choice", "*", [])},
            "title": {
                "content": "mixed",
                "model": ("choice", "*", [name("em")]),
                "children": {"em": (0, None)},
            },
            "em": {"content": "mixed", "model": ("choice", "*", [])},
            "author": {"content": "mixed", "model": ("choice", "*", [])},
            "editor": {"content": "empty", "model": None, "attributes": {"since": attribute()}},
        }
    }
)


def queries(number: int = 300, *, seed: str = "s", **parameters: Any) -> list[str]:
    profile = Profile.drawn(BOOKS, seed=seed)
    return list(generate_queries(BOOKS, profile, QueryOptions(number=number, **parameters), seed=seed))


def documents(number: int = 60, *, seed: str = "s", **parameters: Any) -> list[etree._Element]:
    profile = Profile.drawn(BOOKS, seed=seed)
    options = DocumentOptions(number=number, **parameters)
    return [etree.fromstring(text) for text in generate_documents(BOOKS, profile, options, seed=seed)]


def test_roots_are_what_is_in_no_other_element() -> None:
    assert BOOKS.roots == ("shop",)


def test_the_same_seed_gives_the_same() -> None:
    assert queries(predicates=2, nested=1) == queries(predicates=2, nested=1)
    assert queries(predicates=2) != queries(predicates=2, seed="t")
    assert [etree.tostring(one) for one in documents()] == [etree.tostring(one) for one in documents()]


def test_queries_are_distinct_by_default() -> None:
    assert len(set(queries(300))) == 300
    assert len(set(queries(300, distinct=False))) < 300
    with pytest.raises(ValueError, match="no more than"):
        queries(1_000, wildcard=0, descendant=0, depth=3)


def test_wildcards_and_descendants_come_as_often_as_asked() -> None:
    steps = Counter[tuple[str, bool]]()
    for query in queries(2_000, distinct=False, wildcard=0.3, descendant=0, depth=5):
        # The last step always has a name.
        steps.update((axis, test == "*") for axis, test in STEP.findall(query)[:-1])
    assert steps["//", False] == steps["//", True] == 0
    assert steps["/", True] / steps.total() == pytest.approx(0.3, abs=0.03)
    plain = queries(20, wildcard=0, descendant=0, depth=6, distinct=False)
    assert not any("*" in query or "//" in query for query in plain)


def test_redundant_descendant_wildcards_are_rewritten() -> None:
    def rewritten(path: str) -> str:
        return "".join(map(str, rewrite([Step(axis, test, 0) for axis, test in STEP.findall(path)])))

    assert rewritten("/a//*/b//*//*/c") == "/a/*//b/*//c"
    assert rewritten("//*//a") == "/*//a"
    assert rewritten("/*/*//a") == "/*/*//a"
    assert not any("//*" in query for query in queries(500, wildcard=0.5, descendant=0.5, nested=1))


def test_predicates_and_nested_paths_are_counted() -> None:
    for query in queries(predicates=2, nested=1):
        inside = re.findall(r"\[([^\]]*)\]", query)
        tests = [one for one in inside if one.startswith(("@", "text()")) or one.isdigit()]
        assert (len(tests), len(inside)) == (2, 3), query


def test_the_mix_is_what_is_tested() -> None:
    every = " ".join(queries(2_000, predicates=2, depth=8))
    for kind in (r'\[@\w+ = "', r"\[@\w+ = \d", r'\[text\(\) = "', r"\[\d\]", r" [<>]=? \d", r"!= \d"):
        assert re.search(kind, every), kind
    strings = queries(200, predicates=1, mix=Mix(attribute=1, text=0, position=0, equality=1, quoted=1))
    assert all(re.search(r'\[@\w+ = "[^"]+"\]', query) for query in strings)
    positions = queries(50, predicates=1, repeats=2, mix=Mix(attribute=0, text=0, position=1))
    assert all(re.search(r"\[[12]\]", query) for query in positions)


def test_documents_follow_the_content_models() -> None:
    dtd = etree.DTD(
        StringIO(
            """<!ELEMENT shop (name, shelf+)><!ELEMENT shelf (book|shelf)*><!ELEMENT name (#PCDATA)>
            <!ATTLIST shelf room CDATA #IMPLIED side (left|right) "left"><!ELEMENT em (#PCDATA)>
            <!ELEMENT book (title, (author+|editor))><!ELEMENT title (#PCDATA|em)*><!ELEMENT author (#PCDATA)>
            <!ATTLIST book id CDATA #REQUIRED unit CDATA #FIXED "each"><!ELEMENT editor EMPTY>
            <!ATTLIST editor since CDATA #IMPLIED>"""
        )
    )
    for document in documents(depth=5, repeats=3):
        assert dtd.validate(document), dtd.error_log
        for element in document.iter():
            assert max(Counter(child.tag for child in element).values(), default=0) <= 3
            # Depth 5, and what a book at that depth demands.
            assert len(list(element.iterancestors())) < 5 + 2


def test_tests_ask_for_values_that_occur() -> None:
    """Every test of a query is true somewhere; no literal is outside the range the documents have."""
    found = documents(300)
    tests = {
        test for query in queries(500, predicates=1) for test in re.findall(r"\[[^\]]*[=<>][^\]]*\]", query)
    }
    some = [
        test for test in sorted(tests) if any(document.xpath(f"boolean(//*{test})") for document in found)
    ]
    # `@a < 1` and its like are the exceptions.
    assert len(some) >= 0.95 * len(tests)
    matches = sum(
        bool(document.xpath(query)) for query in queries(200, predicates=1) for document in found[:50]
    )
    assert 100 < matches < 9_000


def test_a_profile_is_observed_in_documents() -> None:
    profile = Profile.observed([b'<a x="1"><b>7</b><b> 8\n<!-- - -->x</b></a>', b'<a x="2"/>', b"<a/>"])
    assert profile.attributes["a"]["x"].values == ("1", "2")
    assert profile.attributes["a"]["x"].probability == pytest.approx(2 / 3)
    assert profile.texts["b"].values == ("7", "x", " 8\n")
    assert "a" not in profile.texts
    dtd = Dtd.from_dict(
        {"elements": {"a": {"content": "children", "children": {"b": (0, None)}}, "b": {"content": "mixed"}}}
    )
    texts = Mix(attribute=0, text=1, position=0)
    made = set(generate_queries(dtd, profile, QueryOptions(number=20, predicates=1, mix=texts), seed=1))
    # A value that spans lines is only asked for as a number: a query is one line.
    assert any("= 8]" in query for query in made)
    assert not any("\n" in query for query in made)


def test_stock_gives_about_as_many_notifications_as_asked_for() -> None:
    options = StockOptions(subscriptions=50_000, messages=2_000, notifications=2_000)
    subscriptions = list(stock_subscriptions(options, seed=3))
    messages = list(stock_messages(options, seed=3))
    assert (len(subscriptions), len(messages)) == (50_000, 2_000)
    assert sum(map(len, messages)) / len(messages) == pytest.approx(155, abs=10)
    by_symbol: dict[str, list[list[tuple[str, str, float]]]] = {}
    for subscription in subscriptions:
        symbol = re.search(r'"(S\d{4})"', subscription)
        bounds = re.findall(r"/stock/(\w+)/text\(\) ([<>]) ([\d.]+)", subscription)
        assert symbol is not None
        assert len(bounds) == 4
        by_symbol.setdefault(symbol[1], []).append([(field, op, float(value)) for field, op, value in bounds])
    notifications = 0
    for message in messages:
        fields = {child.tag: child.text or "" for child in etree.fromstring(message)}
        for bounds_of_one in by_symbol.get(fields["symbol"], []):
            notifications += all(
                float(fields[field]) < value if op == "<" else float(fields[field]) > value
                for field, op, value in bounds_of_one
            )
    assert notifications == pytest.approx(2_000, rel=0.1)
    assert list(islice(stock_subscriptions(options, seed=3), 10)) == subscriptions[:10]
    with pytest.raises(ValueError, match="at most"):
        next(stock_subscriptions(StockOptions(100, 100, 1_000), seed=1))


def transformations(number: int = 300, *, seed: str = "s", **parameters: Any) -> list[str]:
    profile = Profile.even(BOOKS, values=5)
    options = TransformationOptions(number=number, **({"binding_depth": 3} | parameters))
    return list(generate_transformations(BOOKS, profile, options, seed=seed))


def test_transformations_are_distinct_and_accepted() -> None:
    made = transformations(predicates=2)
    assert made == transformations(predicates=2)
    assert made != transformations(predicates=2, seed="t")
    assert len({tamis.check(query).id for query in made}) == len(made)
    for query in made:
        paths = re.findall(r"{ (\S+) }", query)
        conditions = re.findall(r'\$v\S+ = "[1-5]"', query)
        assert (len(paths), len(conditions)) == (2, 2), query
        assert (paths, conditions) == (sorted(set(paths)), sorted(set(conditions)))
    with pytest.raises(ValueError, match="no more than"):
        transformations(5_000, descendant=0)


def test_transformations_go_as_deep_as_asked() -> None:
    flat = transformations(2, descendant=0, predicates=0, returns=1, depth=1, binding_depth=2)
    assert sorted(flat) == [
        "for $v in /shop/shelf return <result>{ $v/book }</result>",
        "for $v in /shop/shelf return <result>{ $v/shelf }</result>",
    ]
    assert any("//" in query for query in transformations(50, descendant=0.5))


def test_an_even_profile_has_every_value_everywhere() -> None:
    profile = Profile.even(BOOKS, values=3)
    assert profile.texts["author"] == profile.attributes["shelf"]["room"]
    assert profile.texts["author"].values == ("1", "2", "3")
    documents = generate_documents(BOOKS, profile, DocumentOptions(50), seed="s")
    rooms = {shelf.get("room") for one in documents for shelf in etree.fromstring(one).iter("shelf")}
    assert rooms == {"1", "2", "3"}


def test_single_elements_may_be_repeated_more_often() -> None:
    shops = documents(repeats=2, repeats_of={"shelf": 9}, depth=4)
    assert max(len(shop.findall("shelf")) for shop in shops) == 9
    assert max(len(book.findall("author")) for shop in shops for book in shop.iter("book")) == 2


def test_rules_and_ordered_transformations_are_accepted() -> None:
    profile = Profile.even(BOOKS, values=5)
    options = QueryOptions(300, predicates=1, rules=2)
    rules = list(generate_queries(BOOKS, profile, options, seed=1))
    assert rules == list(generate_queries(BOOKS, profile, options, seed=1))
    ordered = TransformationOptions(50, ordered=True)
    transformations = list(generate_transformations(BOOKS, profile, ordered, seed=1))
    for query in (*rules, *transformations):
        tamis.check(query)
    said = " ".join(rules)
    for part in (
        "count(",
        "normalize-space(",
        "string-length(",
        "substring(",
        " * ",
        "last()",
        "matches(",
        "some $x",
    ):
        assert part in said
    assert "ancestor::" in said or "preceding-sibling::" in said
    assert all(", $w in $v" in query and " order by $w " in query for query in transformations)


def test_respelled_queries_mean_the_same() -> None:
    profile = Profile.even(BOOKS, values=5)
    queries = list(generate_queries(BOOKS, profile, QueryOptions(200, predicates=1, nested=1), seed=1))
    spelled = list(respelled(queries, seed="1"))
    documents = list(generate_documents(BOOKS, profile, DocumentOptions(20), seed=1))
    assert answer(loaded(spelled, {}), documents) == answer(loaded(queries, {}), documents)
    assert sum(one != other for one, other in zip(queries, spelled, strict=True)) > 150
