"""Files, folders, tables and queries of databases → records."""

import datetime
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, text

from tamis import DataError, Index
from tamis.data import read_data, read_query


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_an_xml_file_is_one_record_or_one_per_element(tmp_path: Path) -> None:
    book = written(tmp_path, "book.xml", "<b xmlns:p='u'><i k='1'/><i k='2'><p:x/></i></b>")
    packed = written(tmp_path, "book.xml.gz", gzip.compress(book.read_bytes()))
    assert read_data(book).records == read_data(packed).records == [book.read_bytes()]
    first, second = read_data(packed, record="i").records
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
    assert [b"k='1'" in first, b"<p:x/>" in second] == [True, True]
    assert read_data(book, record="i").records == [first, second]


def test_a_folder_has_a_record_per_xml_file_by_name(tmp_path: Path) -> None:
    for name in ("b.xml", "a.xml", "note.txt"):
        written(tmp_path, name, f"<{name[0]}/>")
    written(tmp_path, "c.xml.gz", gzip.compress(b"<c/>"))
    assert read_data(tmp_path).records == [b"<a/>", b"<b/>", b"<c/>"]


def test_an_empty_field_is_an_empty_child(tmp_path: Path) -> None:
    table = written(tmp_path, "t.csv", '\ufeffid,näme\n011,"a ""b"", <c>"\n\n2,\n')
    assert read_data(table).records == [
        '<row><id>011</id><näme>a "b", &lt;c&gt;</näme></row>'.encode(),
        "<row><id>2</id><näme></näme></row>".encode(),
    ]


def test_columns_are_children_and_null_is_none(tmp_path: Path) -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    row: dict[str, Any] = {
        "whole": 10**15,
        "real": 1e-7,
        "even": 2.0,
        "price": Decimal("2.50"),
        "day": datetime.date(2026, 1, 2),
        "at": moment,
        "yes": True,
        "none": None,
        "nested": {"x": 1, "y": None},
        "many": ["a", "b"],
    }
    table = pa.Table.from_pylist([row]).set_column(7, "none", pa.nulls(1, pa.string()))
    pq.write_table(table, tmp_path / "t.parquet")
    (record,) = read_data(tmp_path / "t.parquet").records
    assert record == (
        b"<row><whole>1000000000000000</whole><real>0.0000001</real><even>2</even><price>2.50</price>"
        b"<day>2026-01-02</day><at>2026-01-02T03:04:05+00:00</at><yes>true</yes>"
        b"<nested><x>1</x></nested><many>a</many><many>b</many></row>"
    )


def test_a_query_of_a_database(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/d.sqlite")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (id INTEGER, name TEXT)"))
        connection.execute(text("INSERT INTO t VALUES (2, 'b'), (1, NULL)"))
    engine.dispose()
    url = "sqlite:///${FOLDER}/d.sqlite"
    environment = {"FOLDER": str(tmp_path)}
    data = read_query(url, "SELECT * FROM t ORDER BY id", environment=environment)
    assert data.records == [b"<row><id>1</id></row>", b"<row><id>2</id><name>b</name></row>"]
    with pytest.raises(DataError, match="failed-query") as failed:
        read_query(url, "SELECT * FROM missing", environment=environment)
    assert "no such table" in failed.value.reason
    assert str(tmp_path) not in failed.value.reason
    with pytest.raises(DataError, match="the variable FOLDER"):
        read_query(url, "SELECT 1", environment={})


@pytest.mark.parametrize(
    ("name", "content", "code", "reason"),
    [
        ("t.csv", "", "no-column", "names the columns"),
        ("t.csv", "a b,c\n1,2\n", "bad-column", "'a b'"),
        ("t.csv", "p:a\n1\n", "bad-column", "'p:a'"),
        ("t.csv", "a,a\n1,2\n", "bad-column", "two columns 'a'"),
        ("t.csv", "a,b\n1,2\n3\n", "bad-csv", "row 2 has 1 fields"),
        ("t.csv", 'a\n"1\n', "bad-csv", "line"),
        ("t.csv", b"a\n\xff\n", "bad-csv", "not UTF-8"),
        ("t.csv", "a\nx\x01\n", "bad-character", "row 1: a has the character U+0001"),
        ("t.parquet", "no", "bad-parquet", "cannot be read"),
        ("t.xml.gz", b"no", "bad-gzip", "damaged"),
    ],
)
def test_what_is_damaged_is_refused_with_its_place(
    tmp_path: Path, name: str, content: str | bytes, code: str, reason: str
) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(DataError) as refused:
        read_data(path)
    assert refused.value.code == code
    assert reason in refused.value.reason
    assert path.name in refused.value.reason


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    book = written(tmp_path, "book.xml", "<b><i/></b>")
    for path, record, code in [
        (tmp_path / "no.csv", None, "unreadable-data"),
        (tmp_path / "no.xml", None, "unreadable"),
        (book, "x", "no-record"),
    ]:
        with pytest.raises(DataError) as refused:
            read_data(path, record=record)
        assert refused.value.code == code
    book.unlink()
    with pytest.raises(DataError, match="no-record"):
        read_data(tmp_path)


def test_values_survive_the_way_through_xml(tmp_path: Path) -> None:
    """Line ends and characters of mark-up too, when a query compares them."""
    values = ["a\r\nb", "<&>", " x ", "]]>", "é😀"]
    pq.write_table(pa.table({"v": values}), tmp_path / "t.parquet")
    index = Index()
    index.attach("t", read_data(tmp_path / "t.parquet"))
    index.insert(1, "for $v in collection('t')/row/v return <c>{ string-length($v) }</c>")
    (output,) = index.transform(b"<m/>")
    assert output.payload == b"".join(f"<c>{len(value)}</c>".encode() for value in values)
