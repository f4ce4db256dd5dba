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


def test_values_below_elements_that_lie_inside_one_another() -> None:
    count, depth = MANY // 5, 240
    queries = [f"//a[.//x='{number}'][.//y='{number}']" for number in range(count)]
    xs = "".join(f"<x>{number}</x>" for number in range(count))
    message = "".join(f"{'<a>' * depth}{below}{'</a>' * depth}" for below in (xs, xs.replace("x", "y")))
    both = "<a><x>7</x><y>7</y></a>"
    assert index(queries).match(f"<r>{message}{both}</r>".encode()) == [7]


@pytest.mark.parametrize("rest", ["[@y]", "[b/c]", "[.//c = 't']", "[@y or @z]"])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_ranges_that_differ_in_their_constants(operator: str, rest: str) -> None:
    queries = [f"//a[@x {operator} {number}]{rest}" for number in range(MANY // 5)]
    plain = "".join(f"<a x='{number}'/>" for number in range(-1, MANY // 5 + 1))
    message = f"<r>{plain}<a x='700' y=''><b><c>t</c></b></a><a y=''><b><c>t</c></b></a></r>"
    expected = {
        "<": list(range(701, MANY // 5)),
        "<=": list(range(700, MANY // 5)),
        ">": list(range(700)),
        ">=": list(range(701)),
    }
    assert sorted(index(queries).match(message.encode())) == expected[operator]


# Elements have a number each, and what else a query asks for is somewhere, at one element with its number.
ATTRIBUTES, CHILDREN = "<a x='{0}' p='{1}' q='{1}'/>", "<a><x>{0}</x><p>{1}</p><q>{1}</q></a>"
VALUES_AND_MORE = {
    "attributes": ("//a[@x='%'][@p > 1][@q < 9]", ATTRIBUTES),
    "numbers": ("//a[@p > 1][@q < 9][@x = %]", ATTRIBUTES),
    "both": ("//a[@x='%' and (@p > 1 or @z) and @q < 9]", ATTRIBUTES),
    "any name": ("//*[@x='%'][@p > 1][@q < 9]", ATTRIBUTES),
    "not": ("//a[@x='%'][not(@p = 0)]", ATTRIBUTES),
    "below a parent": ("/r/a[@x='%'][@p > 1][@q < 9]", ATTRIBUTES),
    "children": ("//a[x='%'][p > 1][q < 9]", CHILDREN),
    "numbers of children": ("/r/a[p > 1][q < 9][x = %]/q", CHILDREN),
}


@pytest.mark.parametrize("name", VALUES_AND_MORE)
def test_a_value_and_what_only_the_element_itself_can_tell(name: str) -> None:
    query, element = VALUES_AND_MORE[name]
    queries = [query.replace("%", str(number)) for number in range(MANY)]
    elements = [element.format(number, 0) for number in range(MANY)]
    elements[MANY // 2] += element.format(7, 5) + element.format(-1, 5)
    assert index(queries).match(f"<r>{''.join(elements)}</r>".encode()) == [7]


@pytest.mark.parametrize("path", ["//a", "/r/a"])
def test_a_value_that_many_others_have_too(path: str) -> None:
    queries = [f"{path}[@x='1'][@p > -{number}][@q < -{number}]" for number in range(MANY)]
    few = "<a x='1' p='0' q='0'/>" * 100 + f"<a x='2' p='-{MANY}' q='-{MANY}'/><a x='1' p='-6' q='-8'/>"
    others = "<b x='1'/>" * MANY
    assert index(queries).match(f"<r><c>{others}</c>{few}</r>".encode()) == [7]


def test_a_chain_of_descendants_without_a_cache() -> None:
    depth = 250
    message = b"<a>" * depth + b"<b/>" * 10_000 + b"</a>" * depth
    assert index(["//*" * depth, "//*" * depth + "//b", "//*" * depth + "//zz"], 0).match(message) == [0, 1]


def test_names_that_no_query_mentions_take_no_room() -> None:
    made = index(["//*" * 250 + "//zz", "//b"])
    first = b"<a>" * 64 + b"<n/>" + b"</a>" * 64
    assert made.match(first) == []
    before = made.stats()
    names = b"".join(b"<n%d/>" % number for number in range(20_000))
    assert made.match(b"<a>" * 64 + names + b"<b/>" + b"</a>" * 64) == [1]
    after = made.stats()
    assert after.cache_states <= before.cache_states + 2
    # Beside what each path of tags leads to.
    assert after.cache_bytes - before.cache_bytes < 20_000 * 20


def test_a_small_message_has_room_after_one_that_had_none() -> None:
    made = index([f"//n{number}[@x='{number}']" for number in range(70_000)], 1 << 20)
    large = b"<r>" + b"".join(b"<n%d x='1'/>" % number for number in range(70_000)) + b"</r>"
    for _ in range(2):
        made.match(large)
        assert made.match(b"<r><n5 x='5'/></r>") == [5]
        assert 0 < made.stats().cache_bytes < 1 << 18
        assert made.stats().cache_states == 3


def test_attributes_that_many_queries_ask_for() -> None:
    queries = [f"//*[@a{number}='zz']" for number in range(MANY)]
    element = "<e {}/>".format(" ".join(f"a{number}='1'" for number in range(200)))
    message = "<r>" + element * 2_000 + f"<e a{MANY - 1}='zz'/></r>"
    assert index(queries).match(message.encode()) == [MANY - 1]
