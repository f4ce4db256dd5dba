"""Many queries on a message with many elements: the time follows the message, not queries × elements."""

import pyarrow as pa
import pytest

import tamis

MANY = 50_000


def index(queries: list[str], cache_bytes: int = 64 << 20) -> tamis.Index:
    made = tamis.Index(cache_bytes=cache_bytes)
    made.load(pa.table({"target": range(len(queries)), "query": queries}))
    return made


# Queries for a number, and an element with two of them: only where they are the same, it matches.
EQUALITIES = {
    "attributes": ("//a[@x='%'][@y='%']", "<a x='{}' y='{}'/>"),
    "three attributes": ("//a[@x='%'][@y='%'][@z='%']", "<a x='{0}' y='{1}' z='{0}'/>"),
    "children": ("//a[x='%'][y='%']", "<a><x>{}</x><y>{}</y></a>"),
    "descendants": ("//a[.//x='%'][.//y='%']", "<a><b><x>{}</x><y>{}</y></b></a>"),
    "further descendants": ("//a[.//b/x='%'][.//c//y='%']", "<a><b><x>{}</x></b><c><y>{}</y></c></a>"),
    "inside one another": ("//a[b[@x='%'][@y]][@z='%']", "<a z='{}'><b x='{}' y=''/></a><a><b y=''/></a>"),
    "the other way": ("//a[b[@x='%'][@y='%']][@z]", "<a z=''><b x='{}' y='{}'/></a>"),
    "counted": ("//a[@x='%'][1][@y='%']", "<p><a x='{}' y='{}'/></p>"),
}


@pytest.mark.parametrize("name", EQUALITIES)
def test_equal_values_at_different_elements(name: str) -> None:
    query, element = EQUALITIES[name]
    queries = [query.replace("%", str(number)) for number in range(MANY)]
    elements = [element.format(number, (number + 1) % MANY) for number in range(MANY)]
    elements[MANY // 2] += element.format(7, 7)
    assert index(queries).match(f"<r>{''.join(elements)}</r>".encode()) == [7]


@pytest.mark.parametrize("place", ["@y", ".//y", ".//b/y", ".//b//y"])
@pytest.mark.parametrize("value", ["@x", "x", ".//x"])
def test_a_value_at_one_of_many_elements_that_have_something_else(value: str, place: str) -> None:
    queries = [f"//a[{value}='{number}'][{place}]" for number in range(MANY // 4)]
    with_place = "<a y=''><b><y/></b>{}</a>"
    elements = [f"<a x='{number}'><x>{number}</x></a>{with_place.format('')}" for number in range(MANY // 4)]
    elements.append("<a x='7' y=''><x>7</x><b><y/></b></a>")
    assert index(queries).match(f"<r>{''.join(elements)}</r>".encode()) == [7]
