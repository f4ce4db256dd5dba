"""Axes and functions combined to take each pair of nodes of a large message: counted in steps, not seconds.

Where a linear way exists, the steps follow the message; elsewhere the query fails alone at the work limit.
"""

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
