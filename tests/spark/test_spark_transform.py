"""Transforming DataFrames, on a real local Spark."""

import pickle
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import tamis
from tamis import Limits
from tamis.spark import transform
from tests.helpers.spark_session import frame

BOOK = (
    b"<!ELEMENT book (title, section*)> <!ELEMENT section (title, section*)> <!ELEMENT title (#PCDATA)>"
    b"<!ATTLIST section id CDATA #IMPLIED>"
)

MESSAGES = [
    b"<book><title>A</title><section id='1'><title>x</title>"
    b"<section id='2'><title>y</title></section></section></book>",
    b"<book><title>B</title></book>",
    b"<book><title>broken</book>",
    b"<other><section id='2'><title>z</title></section></other>",
    b"<book><section id='3'>" + b"<title>t</title>" * 50 + b"</section></book>",
]

QUERIES = {
    1: "for $s in //section where $s/@id = 2 return <s>{ $s/title }</s>",
    2: "//title",
    3: "<titles>{ for $s in //section return $s/title }</titles>",
    4: "//title",
    # The same output as target 1's, by another condition.
    5: "for $s in //section where $s/@id > 1.5 and $s/@id < 2.5 return <s>{ $s/title }</s>",
}

LIMITS = Limits(output=300)


def index_of(folder: Path) -> tamis.Index:
    index = tamis.Index()
    for target, query in QUERIES.items():
        index.insert(target, query, tenant="t")
    index.insert(9, "for $t in //title return <only-here>{ $t/text() }</only-here>", tenant="u")
    index.snapshot(folder)
    return index


def test_rows_are_what_the_index_makes(spark: SparkSession, tmp_path: Path) -> None:
    index = index_of(tmp_path / "index")
    schema = tamis.Schema(tamis.read_dtd(BOOK))
    df = frame(
        spark,
        tmp_path / "messages",
        {"id": range(len(MESSAGES)), "xml": pa.array(MESSAGES, pa.binary())},
        files=2,
    )
    rows = transform(df, index, message="xml", tenant="t", limits=LIMITS, schema=schema).collect()
    found: dict[tuple[int, int | None], tuple[bytes | None, str | None]] = {
        (row.id, row.target): (
            None if row.payload is None else bytes(row.payload),
            None if row.error is None else row.error.code,
        )
        for row in rows
    }
    assert len(found) == len(rows)
    expected: dict[tuple[int, int | None], tuple[bytes | None, str | None]] = {}
    for place, message in enumerate(MESSAGES):
        try:
            outputs = index.transform(message, tenant="t", limits=LIMITS)
        except tamis.ReadError as error:
            expected[place, None] = (None, error.code)
            continue
        for output in outputs:
            expected[place, output.target] = (output.payload, output.code)
    assert found == expected
    assert found[0, 1] == (b"<s><title>y</title></s>", None)
    assert found[0, 2] == (MESSAGES[0], None)
    assert found[4, 3] == (None, "output-limit")


def test_tenants_get_their_own_outputs(spark: SparkSession, tmp_path: Path) -> None:
    index = index_of(tmp_path / "index")
    columns = {
        "id": range(6),
        "tenant": ["t", "u", None, "t", "u", "nobody"],
        "xml": pa.array([MESSAGES[0]] * 6, pa.binary()),
    }
    df = frame(spark, tmp_path / "messages", columns, files=1)
    rows = transform(df, index, message="xml", tenant_column="tenant", keep=["id"]).collect()
    payloads = {(row.id, row.target): row.payload and bytes(row.payload) for row in rows}
    assert {place for place, target in payloads if target == 9} == {1, 4}
    assert payloads[4, 9] == (b"<only-here>A</only-here><only-here>x</only-here><only-here>y</only-here>")
    assert payloads[3, 5] == b"<s><title>y</title></s>"
    assert {target for place, target in payloads if place == 0} == set(QUERIES)
    assert payloads[2, None] is None
    assert not [place for place, _ in payloads if place == 5]


def test_schemas_of_a_process_are_one_by_their_graph() -> None:
    schema = tamis.Schema(tamis.read_dtd(BOOK))
    again = pickle.loads(pickle.dumps(schema))
    assert again._kernel is schema._kernel
