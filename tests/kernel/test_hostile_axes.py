"""Axes and functions combined to take each pair of nodes of a large message: counted in steps, not seconds.

Where a linear way exists, the steps follow the message; elsewhere the query fails alone at the work limit.
"""

import re
from pathlib import Path
from typing import Any

import pytest

import tamis

AXES = (
    "descendant", "descendant-or-self", "ancestor", "ancestor-or-self", "following-sibling",
    "preceding-sibling", "following", "preceding",
)  # fmt: skip
NEVER = 10**8
"""No message has so many nodes."""


def wide(count: int) -> bytes:
    """Elements of one parent."""
    return b"<r>" + b"<a x='1'><b>1</b></a>" * (count // 2) + b"</r>"


def deep(count: int) -> bytes:
    """Elements inside one another, 240 deep."""
    return b"<r>" + (b"<a x='1'>" * 240 + b"<b>1</b>" + b"</a>" * 240) * (count // 241) + b"</r>"


MESSAGES = {"wide": wide, "deep": deep}
SMALLER = (wide(20_000), deep(5_000))

LINEAR = (
    *(f"//*[count({axis}::{test}) > {NEVER}]" for axis in AXES for test in ("*", "b", "node()")),
    *(f"//*[{axis}::zz]" for axis in AXES),
    *(f"//*[not({axis}::zz)]/zz" for axis in AXES),
    *(f"//*[count({axis}::a) + count({axis}::b) * 2 = -1]" for axis in AXES),
    *(f"//*[{axis}::*[1]/@zz]" for axis in AXES),
    *(f"//a[{axis}::a[2][zz]]" for axis in AXES),
)


def steps(query: str, message: bytes, limits: tamis.Limits | None = None) -> tuple[int, bool]:
    """The steps of matching, and whether the query failed."""
    index = tamis.Index()
    index.insert(1, query)
    found = index.match_batch([message], limits=limits or tamis.Limits())
    failed: Any = index.failed_targets(found).to_pylist()[0]
    taken: Any = found.column("steps").to_pylist()[0]
    return taken, bool(failed)


@pytest.mark.parametrize("shape", MESSAGES)
@pytest.mark.parametrize("query", LINEAR)
def test_steps_follow_the_message(query: str, shape: str) -> None:
    half, failed = steps(query, MESSAGES[shape](4_000))
    all_of_it, failed_too = steps(query, MESSAGES[shape](8_000))
    assert not failed
    assert not failed_too
    assert all_of_it <= 3 * half + 1_000, (half, all_of_it)


QUADRATIC = (
    *(f"//*[{axis}::a = //zz/@x][{axis}::b < 0]" for axis in AXES),
    *(f"//*[sum({axis}::*) = -1]" for axis in AXES),
    *(f"count(//a/{axis}::*/{axis}::*) = 7" for axis in AXES),
    "//*[string-length(.) = string-length(string-join(//b, 'x'))]",
    "//*[count(//b) = -1]",
    "//*[count(//a[b = //b]) = -1]",
    "//a[b = //b/following::b][last() = 0]",
    "some $x in //a, $y in //a satisfies $x/@x != $y/@x",
    "//*[position() = last() - 1][count(.//*[position() = last()]) = -1]",
    "count(//*//*//*) = 5",
)


def test_whatever_is_asked_of_a_million_elements_ends() -> None:
    """One message and all queries: those that have no linear way reach the work limit, and fail alone."""
    index = tamis.Index()
    queries = (*LINEAR[::5], *QUADRATIC)
    for target, query in enumerate(queries):
        index.insert(target, query)
    index.insert(len(queries), "//b")
    for message in (wide(1_000_000), deep(250_000)):
        limits = tamis.Limits(work=1 << 20, document=64 << 20)
        found = index.match_batch([message], limits=limits)
        matching: Any = index.targets(found).to_pylist()[0]
        assert matching[-1] == len(queries)
        assert found.column("code").to_pylist() == [None]
        # The last step of a query may be as large as the message.
        taken: Any = found.column("steps").to_pylist()[0]
        assert taken <= len(queries) * (1 << 22)


CALLS = {
    # A condition that holds nowhere, with % for nodes.
    "not": "not(%) and zz",
    "true": "% = true() and zz",
    "false": "% != false() and zz",
    "boolean": "boolean(%) and zz",
    "count": "count(%) = -1",
    "sum": "sum(%) = -1",
    "position": "%[position() = 3]/zz",
    "last": "%[last()]/zz",
    "local-name": "local-name(%) = 'zz'",
    "name": "name(%) = 'zz'",
    "namespace-uri": "namespace-uri(%) = 'zz'",
    "string": "%/string() = 'zz'",
    "number": "number(%) = -1",
    "concat": "concat(%, 'a', %) = 'zz'",
    "starts-with": "starts-with(%, 'zz')",
    "contains": "contains(%, 'zz')",
    "substring-before": "substring-before(%, '1') = 'zz'",
    "substring-after": "substring-after(%, '1') = 'zz'",
    "substring": "substring(%, 2) = 'zz'",
    "string-length": "string-length(%) = -1",
    "normalize-space": "normalize-space(%) = 'zz'",
    "translate": "translate(%, '1', 'z') = 'y'",
    "lang": "%[lang('zz')]",
    "floor": "floor(%) = -1",
    "format-number": "format-number(%, '0.0') = 'zz'",
    "ceiling": "ceiling(%) = -1",
    "round": "round(%) = -1",
    "xs:date": "xs:date(%) = xs:date('1999-12-31')",
    "xs:dateTime": "xs:dateTime(%) = xs:dateTime('1999-12-31T00:00:00')",
    "exists": "exists(%[zz])",
    "empty": "empty(%[not(zz)]) and zz",
    "ends-with": "ends-with(%, 'zz')",
    "lower-case": "lower-case(%) = 'ZZ'",
    "upper-case": "upper-case(%) = 'zz'",
    "matches": "matches(%, '(z|1){2,50}y')",
    "replace": "replace(%, '1', '22') = 'zz'",
    "tokenize": "tokenize(%, '1') = 'zz'",
    "string-join": "string-join(%, 'x') = 'zz'",
    "distinct-values": "distinct-values(%) = 'zz'",
    "abs": "abs(%) = -1",
    "min": "min(%) = -1",
    "max": "max(%) = -1",
    "avg": "avg(%) = -1",
    "xs:integer": "xs:integer(%) = -1",
    "xs:decimal": "xs:decimal(%) = -1",
    "xs:double": "xs:double(%) = -1",
}
ALL_AXES = (*AXES, "child", "parent", "self", "attribute")


def documented() -> list[str]:
    """The functions in the tables of the manual: a row of them has signatures in its first column."""
    manual = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8")
    rows = re.findall(r"^\| ((?:`[\w:-]+\([\w?, …]*\)`(?:, )?)+) \|", manual, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([\w:-]+)\(", row)]


FUNCTIONS = documented()


def test_every_function_is_tried() -> None:
    assert len(FUNCTIONS) >= 45
    assert set(FUNCTIONS) <= CALLS.keys()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_every_axis_stays_within_the_work_limit(function: str) -> None:
    """From each element of a message, nodes on an axis, and from each of these again."""
    limits = tamis.Limits(work=1 << 16)
    for axis in ALL_AXES:
        for nodes in (f"{axis}::node()", f"//*/{axis}::*"):
            query = f"//*[{CALLS[function].replace('%', nodes)}]"
            for message in SMALLER:
                taken, _ = steps(query, message, limits)
                # The last step may be as large as the message, or as its text.
                assert taken <= 1 << 17, query


def test_every_function_and_axis_on_a_million_elements() -> None:
    index = tamis.Index()
    for target, function in enumerate(FUNCTIONS):
        axis = ALL_AXES[target % len(ALL_AXES)]
        index.insert(target, f"//*[{CALLS[function].replace('%', f'{axis}::*')}]")
    index.insert(len(FUNCTIONS), "//b")
    for message in (wide(1_000_000), deep(250_000)):
        found = index.match_batch([message], limits=tamis.Limits(work=1 << 18, document=64 << 20))
        matching: Any = index.targets(found).to_pylist()[0]
        assert matching == [len(FUNCTIONS)]
        taken: Any = found.column("steps").to_pylist()[0]
        assert taken <= len(FUNCTIONS) * (1 << 22)
