"""Weakenings of queries, and tables of them: map, collect, aggregate."""

import random
import time
from collections import Counter

import pytest

import tamis
from tamis.model.matching import Line
from tamis.network.interest import Delta, Interest, InterestTable, Row, rows_of, text_of, weaker_forms
from tests.helpers import random_documents as documents
from tests.helpers.engines import ENGINES
from tests.kernel.test_random import Group

SF = "/nitf/head/pubdata/@edition.area='SF'"
STOCK = "/nitf//tobject.subject/@tobject.subject.type='Stock'"
FISHING = "/nitf//tobject.subject/@tobject.subject.matter='fishing'"
TIDE = "/nitf//series/@series.name='Tide Forecasts'"

Q1 = "$msg/nitf[head/pubdata[@edition.area='SF']][.//tobject.subject[@tobject.subject.type='Stock']]"
Q2 = "$msg/nitf[head/pubdata[@edition.area='SF']][.//tobject.subject[@tobject.subject.matter='fishing']]"
Q3 = (
    "<nitf>{ for $n in $msg/nitf where $n/head/pubdata/@edition.area = 'SF'"
    " and $n//series/@series.name = 'Tide Forecasts' return <story>{ $n/body/body.content }</story> }</nitf>"
)
"""Figure 7.3 of seed 001, with `//` where its own decomposition has it."""


def texts(rows: frozenset[Row]) -> set[frozenset[str]]:
    return {frozenset(line.text for line in row) for row in rows}


def lines(*some: str) -> Row:
    """A row of plain lines; `x=1` has the path `x`."""
    return frozenset(Line(one, one.partition("=")[0]) for one in some)


def test_map_of_the_queries_in_figure_7_4() -> None:
    assert texts(rows_of(Q1)) == {frozenset([SF, STOCK])}
    assert texts(rows_of(Q2)) == {frozenset([SF, FISHING])}
    assert texts(rows_of(Q3)) == {frozenset([SF, TIDE])}


def test_collect_and_aggregate_of_figure_7_4() -> None:
    five, six, four = Interest(), Interest(), Interest()
    by_five = [five.subscribe("", "q1", Q1), five.subscribe("", "q2", Q2)]
    for delta in by_five:
        four.apply("", "five", delta)
    advertised = four.apply("", "six", six.subscribe("", "q3", Q3))
    assert texts(advertised.added) == {frozenset([SF, TIDE])}
    assert texts(five.table("").advertised) == {frozenset([SF, STOCK]), frozenset([SF, FISHING])}
    everything = {frozenset([SF, STOCK]), frozenset([SF, FISHING]), frozenset([SF, TIDE])}
    assert texts(four.table("").advertised) == everything
    # Box (d): what is common to all. If somebody wants that, the others are not advertised.
    wider = four.subscribe("", "area", SF)
    assert texts(wider.added) == {frozenset([SF])}
    assert texts(wider.removed) == everything
    assert texts(four.table("").advertised) == {frozenset([SF])}
    back = four.unsubscribe("", "area")
    assert (back.added, back.removed) == (wider.removed, wider.added)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("/a[b]/b", "/a/b"),
        ("//a[b and not(c)][2] or contains(/d, 'x')", "/d or //a/b"),
        ("not(//a)", "true()"),
        ("/a[0]", "false()"),
        ("/a[@x=1][@y>2] or /a[@x=1]", "/a/@x=1"),
        ("count(//a[@x]) = 2", "//a/@x"),
    ],
)
def test_weakenings(query: str, text: str) -> None:
    assert tamis.weaken(query).text == tamis.check(text).canonical


def test_a_weakening_that_is_refused_has_a_position() -> None:
    with pytest.raises(tamis.QueryError):
        tamis.weaken("/a[")


def test_names_are_expanded() -> None:
    assert tamis.weaken("/p:a/@x = 'y'", {"p": "urn:u"}).text == "/Q{urn:u}a/@x='y'"


def fits(query: str) -> bool:
    """Whether the rows of a query make up a query that is accepted."""
    try:
        tamis.check(" or ".join(map(text_of, rows_of(query, documents.NAMESPACES))) or "false()")
    except tamis.QueryError:
        return False
    return True


def test_every_query_implies_its_weakening_and_rows() -> None:
    seed = time.time_ns() % 1_000_000_007
    draw = random.Random(seed)
    naive = ENGINES["dfa"] if "dfa" in ENGINES else next(iter(ENGINES.values()))
    pairs = narrowed = 0
    while pairs < 100_000:
        group = Group(draw)
        # As one query, a few weakenings are longer than queries may be.
        given = [query.text for query in group.queries if fits(query.text)]
        weak = [tamis.weaken(text, documents.NAMESPACES) for text in given]
        rows = [rows_of(text, documents.NAMESPACES) for text in given]
        by_rows = [" or ".join(map(text_of, some)) or "false()" for some in rows]
        matched = naive(given, group.messages, documents.NAMESPACES)
        weaker = naive([one.text for one in weak], group.messages, {})
        rowwise = naive(by_rows, group.messages, {})
        for exact, wide, row in zip(matched, weaker, rowwise, strict=True):
            wrong = [given[place] for place in exact - wide]
            assert not wrong, f"seed {seed}: {wrong}"
            assert wide == row, f"seed {seed}"
            narrowed += len(given) - len(wide)
        for some in rows:
            for one in some:
                assert rows_of(text_of(one)) == {one}, f"seed {seed}: {text_of(one)}"
        pairs += len(given) * len(group.messages)
    # It is no use if it lets everything pass.
    assert narrowed > pairs // 10


def test_weaker_forms() -> None:
    row = lines("a=1", "b")
    a, tested, b = Line("a", "a"), Line("a=1", "a"), Line("b", "b")
    forms = {frozenset([a, b]), frozenset([a]), frozenset([tested]), frozenset([b]), frozenset[Line]()}
    assert weaker_forms(row) == forms
    assert weaker_forms(frozenset()) == set()
    many = lines(*(f"l{number}=1" for number in range(9)))
    assert len(weaker_forms(many)) == 19


def advertised_from_scratch(rows: Counter[Row]) -> frozenset[Row]:
    return frozenset(row for row in rows if not weaker_forms(row) & rows.keys())


@pytest.mark.parametrize("seed", range(20))
def test_tables_after_random_deltas_equal_those_from_scratch(seed: int) -> None:
    """Along a chain of brokers: each gets the deltas of the one before."""
    draw = random.Random(seed)
    pool = [
        lines(*draw.sample(["a", "a=1", "a=2", "b", "b=1", "c=1", "d"], draw.randint(0, 3)))
        for _ in range(30)
    ]
    first, second = InterestTable(), InterestTable()
    model: dict[str, Counter[Row]] = {}
    for step in range(300):
        origin = draw.choice("xyz")
        have = model.setdefault(origin, Counter())
        removed = draw.sample(sorted(have.elements(), key=text_of), min(have.total(), draw.randint(0, 2)))
        added = draw.choices(pool, k=draw.randint(0, 3))
        before = first.advertised
        delta = first.change(origin, added, removed)
        have.update(added)
        have.subtract(removed)
        model[origin] = +have
        assert first.advertised == before - delta.removed | delta.added, (seed, step)
        assert not delta.added & before
        assert delta.removed <= before
        second.change("first", delta.added, delta.removed)
    total = sum(model.values(), Counter[Row]())
    assert first.advertised == advertised_from_scratch(total)
    assert second.advertised == first.advertised
    for origin in list(model):
        second.replace("first", second.rows("first"))
        assert first.rows(origin) == model[origin]
        first.replace(origin, ())
    assert first.advertised == frozenset()
    assert (first._total, first._stronger, first._coverers) == (Counter(), {}, Counter())


def test_what_an_origin_has_not_cannot_be_removed() -> None:
    table = InterestTable()
    table.change("x", [lines("a")])
    with pytest.raises(KeyError, match="y has no row a"):
        table.change("y", [lines("b")], [lines("a")])
    assert table.advertised == {lines("a")}
    assert not Delta()


def test_tenants_share_nothing() -> None:
    interest = Interest()
    interest.subscribe("one", "s", "//a")
    interest.subscribe("two", "s", "//a/b")
    assert texts(interest.table("two").advertised) == {frozenset(["//a/b"])}
