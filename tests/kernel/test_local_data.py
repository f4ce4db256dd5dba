"""Data that is not there, too large or damaged; what joins cost; what the planner sees of them."""

from pathlib import Path

import pytest

import tamis
from tamis import Data, Index, MatchError, QueryError, ReadError

MESSAGE = b"<trade symbol='SAP'/>"
WATCH = "//trade[@symbol = collection('watch')/row/symbol]"


def rows(count: int, symbol: str = "SAP") -> Data:
    others = (f"<row><symbol>{place}</symbol></row>".encode() for place in range(1, count))
    return Data([*others, f"<row><symbol>{symbol}</symbol></row>".encode()])


def attached(**data: Data) -> Index:
    index = Index()
    for name, records in data.items():
        index.attach(name, records)
    return index


@pytest.mark.parametrize(
    ("query", "code", "column", "limit"),
    [
        ("//a[b = collection('none')/row]", "unknown-data", 9, None),
        ("doc('none')/row", "unknown-data", 1, None),
        ("doc('watch')/row", "no-document", 1, None),
        ("count(collection('watch')/row) > 2", "scan-limit", 7, 1000),
        ("//a < collection('watch')/row/symbol", "scan-limit", 7, 1000),
        (
            "for $a in //a, $r in collection('watch')/row where $r/symbol != $a return $r",
            "scan-limit",
            22,
            1000,
        ),
        ("for $r in collection('watch')[row/symbol = 'x'] return $r", "scan-limit", 11, 1000),
    ],
)
def test_data_that_does_not_serve_a_query_refuses_it(
    query: str, code: str, column: int, limit: int | None
) -> None:
    index = attached(watch=rows(1001))
    with pytest.raises(QueryError) as refused:
        index.insert(1, query)
    assert (refused.value.code, refused.value.column, refused.value.limit) == (code, column, limit)
    table = {"target": [1, 2], "query": [query, "//a"]}
    import pyarrow as pa

    loaded = index.load(pa.table({**table, "target": pa.array([1, 2], pa.uint64())})).to_pylist()
    assert [(row["row"], row["code"], row["column"]) for row in loaded] == [(0, code, column)]
    with pytest.raises(QueryError, match=code):
        index.explain(MESSAGE, query)
    # The form of a query says nothing of what is attached.
    assert tamis.check(query).canonical


@pytest.mark.parametrize(
    "query",
    [
        WATCH,
        "//trade[collection('watch')/row/symbol = @symbol]",
        "//trade[not(@symbol = collection('watch')/row[symbol = 'IBM']/symbol)]",
        "for $t in //trade, $r in collection('watch')/row[symbol = $t/@symbol] return $r",
        "for $t in //trade, $r in collection('watch')//row where $t/@symbol = $r/symbol return $r",
        "for $t in //trade return <r>{ count(collection('watch')/row[symbol/text() = $t/@symbol]) }</r>",
        "//trade[collection('watch')/row[symbol = 5 or symbol = $msg/trade/@symbol]]",
        "some $t in //trade satisfies exists(collection('watch')/*[. = $t/@symbol or symbol = $t/@symbol])",
    ],
)
def test_an_equality_finds_the_records_of_large_data(query: str) -> None:
    index = attached(watch=rows(20_000))
    index.insert(1, query)
    assert index.match(MESSAGE, limits=tamis.Limits(work=2_000)) == [1]


@pytest.mark.parametrize(
    "query",
    [
        "(collection('watch')//symbol | //trade)/following::row",
        "(collection('watch')//symbol | //trade[1])/parent::row[symbol]",
        "(if (//trade) then collection('watch')//symbol else //trade)/following::row",
        "//trade/(collection('watch')//symbol)/following::row",
        "some $s in collection('watch')//symbol satisfies ($s)[1]/following::row",
        "some $s in collection('watch')//symbol satisfies //trade/($s/..)/ancestor::list",
        "some $s in collection('watch')//symbol satisfies ($s | //none)/following::row",
    ],
)
def test_a_message_needs_nothing_of_what_may_lie_in_data(query: str) -> None:
    index = attached(watch=Data([b"<list><row><symbol/></row><row/></list>"]))
    index.insert(1, query)
    assert index.match(MESSAGE) == [1]


@pytest.mark.parametrize(
    ("condition", "record"),
    [
        ("count(//row) > 1", 1),
        ("count(//row) = 0", 2),
        ("count(following::row) = 1", 1),
        ("ancestor::list[not(row)]", 2),
        ("@i = //list/symbol/@i", 2),
        ("following::*[1]", 1),
    ],
)
def test_what_is_remembered_of_a_message_says_nothing_of_records(condition: str, record: int) -> None:
    first, second = b"<list><row><symbol i='1'/></row><row/></list>", b"<list><symbol i='2'/></list>"
    index = attached(watch=Data([first, second]))
    for place in (1, 2):
        index.insert(place, f"(//symbol | collection('watch')//symbol)[{condition}]/@i = {place}")
        index.insert(
            2 + place, f"collection('watch')//symbol[{condition}]/@i = {place} or //none[{condition}]"
        )
    # Neither meets the condition, or both do: the message is evaluated first.
    for message in (b"<x><symbol/></x>", b"<list><symbol i='3'/><row/><row/></list>"):
        assert index.match(message) == [record, 2 + record]


def test_long_values_of_elements_with_children_are_not_looked_up() -> None:
    long = b"<row><symbol>" + b"x" * 2_000 + b"</symbol></row>"
    query = "//trade[collection('watch')/row[. = $msg/trade/@symbol]]"
    index = attached(watch=Data([long] * 1_000))
    index.insert(1, query)
    assert index.match(MESSAGE) == []
    index.attach("watch", Data([long] * 1_001))
    with pytest.raises(QueryError, match="scan-limit"):
        index.insert(2, query)
    with pytest.raises(MatchError, match="scan-limit"):
        index.match(MESSAGE)


def test_a_query_fails_alone_when_its_data_grows() -> None:
    index = attached(watch=rows(1000))
    index.insert(1, "count(collection('watch')/row) = 1000")
    index.insert(2, "for $r in collection('watch')/row where $r/symbol != 'x' return <r/>")
    index.insert(3, "//trade")
    assert index.match(MESSAGE) == [1, 2, 3]
    index.attach("watch", rows(1001))
    with pytest.raises(MatchError, match=r"scan-limit.*1001 records of `watch`") as failed:
        index.match(MESSAGE)
    assert (failed.value.targets, failed.value.failed) == ([3], [1, 2])
    outputs = {output.target: output for output in index.transform(MESSAGE)}
    assert [outputs[target].code for target in (1, 2, 3)] == ["scan-limit", "scan-limit", None]


def test_an_index_that_is_opened_has_no_data(tmp_path: Path) -> None:
    index = attached(watch=rows(1))
    index.insert(1, WATCH)
    index.insert(2, "//trade")
    index.snapshot(tmp_path)
    again = Index.open(tmp_path)
    with pytest.raises(MatchError, match="unknown-data") as failed:
        again.match(MESSAGE)
    assert (failed.value.targets, failed.value.failed) == ([2], [1])
    again.attach("watch", rows(1))
    assert again.match(MESSAGE) == [1, 2]
    again.merge()
    assert again.match(MESSAGE) == [1, 2]


def test_attaching_replaces_data_at_once() -> None:
    index = attached(watch=rows(5, "IBM"))
    index.insert(1, WATCH)
    assert index.match(MESSAGE) == []
    index.attach("watch", rows(2))
    assert index.match(MESSAGE) == [1]
    index.attach("watch", Data([]))
    assert index.match(MESSAGE) == []


def test_a_malformed_record_is_named_and_the_data_before_stays() -> None:
    index = attached(watch=rows(1))
    index.insert(1, WATCH)
    with pytest.raises(ReadError, match="record 2: ") as refused:
        index.attach("watch", Data([b"<row/>", b"<row>"]))
    assert refused.value.code == "unclosed-element"
    assert index.match(MESSAGE) == [1]


def test_strings_are_compared_as_they_are() -> None:
    records = [f"<row><symbol>{value}</symbol></row>".encode() for value in ("011", "x ", "")]
    index = attached(watch=Data(records))
    index.insert(1, WATCH)
    index.insert(2, "//trade[collection('watch')/row/symbol = number(@symbol)]")
    found = [index.match(f"<trade symbol='{value}'/>".encode()) for value in ("011", "11", "x ", "x", "")]
    assert found == [[1, 2], [2], [1], [], [1]]


def test_a_key_of_all_records_costs_their_number() -> None:
    """A hot key meets every record: the work limit counts them."""
    records = Data([f"<row n='{place}'><symbol>SAP</symbol></row>".encode() for place in range(5_000)])
    index = attached(watch=records)
    index.insert(1, "for $t in //trade, $r in collection('watch')/row[symbol = $t/@symbol] return <r/>")
    (output,) = index.transform(MESSAGE)
    assert output.payload == b"<r/>" * 5_000
    (output,) = index.transform(MESSAGE, limits=tamis.Limits(work=1_000))
    assert (output.payload, output.code) == (None, "work-limit")
    (output,) = index.transform(MESSAGE, limits=tamis.Limits(bindings=4_999))
    assert (output.payload, output.code) == (None, "bindings-limit")


def test_the_planner_sees_the_part_of_the_message() -> None:
    parts = tamis.decompose([WATCH, "for $t in //trade, $r in collection('watch')/row return $r/.."])
    assert parts.errors.num_rows == 0
    steps = [(step["query"], step["name"]) for step in parts.steps.to_pylist()]
    assert steps == [(0, "trade"), (1, "trade")]
    assert [line["name"] for line in parts.lines.to_pylist()] == ["symbol", None]
    assert not any(row["exact"] for row in parts.alternatives.to_pylist())
    assert tamis.weaken(WATCH).text == "//trade/@symbol"
