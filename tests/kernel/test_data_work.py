"""Joins with local data: what they cost, by counters, and what their limit is."""

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis import Data, Index, ReadError


def company(place: int) -> bytes:
    return (
        f"<row><symbol>S{place}</symbol><sector>s{place % 10}</sector><size>{place % 7}</size></row>".encode()
    )


def loaded(queries: list[str], data: Data | None, *, name: str = "companies") -> Index:
    index = Index()
    if data is not None:
        index.attach(name, data)
    assert load(index, queries) == 0
    return index


def load(index: Index, queries: list[str]) -> int:
    targets = pa.array(range(len(queries)), pa.uint64())
    return index.load(pa.table({"target": targets, "query": queries})).num_rows


def work(index: Index, message: bytes) -> dict[str, int]:
    (row,) = index.match_batch([message]).to_pylist()
    return {name: row[name] for name in ("candidates", "settled", "verified", "probes", "records")} | {
        "matches": len(row["queries"])
    }


COMPANIES = Data([company(place) for place in range(5000)])
FORM = "//trade[@symbol = collection('companies')/row[sector = 's{}' and size > {}]/symbol]"
QUERIES = [FORM.format(sector, size) for sector in range(100) for size in range(20)]


def test_a_filter_costs_what_it_would_on_a_message_with_the_columns() -> None:
    joined = loaded(QUERIES, COMPANIES)
    columns = loaded(
        [f"//trade/row[sector = 's{s}' and size > {n}]" for s in range(100) for n in range(20)], None
    )
    for place in (3, 14, 4999):
        message = f"<trade symbol='S{place}'/>".encode()
        found = work(joined, message)
        rich = work(columns, b"<trade>" + company(place) + b"</trade>")
        assert (found.pop("probes"), found.pop("records")) == (1, 1)
        assert found == {name: rich[name] for name in found}
        assert found["verified"] == 0


def test_a_value_is_probed_once_for_all_queries_and_elements() -> None:
    index = loaded(QUERIES, COMPANIES)
    message = b"<m>" + b"<trade symbol='S3'/><trade symbol='S4'/>" * 5 + b"<trade symbol='none'/></m>"
    found = work(index, message)
    assert (found["probes"], found["records"], found["verified"]) == (3, 2, 0)
    # Conditions hold of one record, not of several together.
    assert found["matches"] == 3 + 4


def test_records_that_messages_meet_are_kept() -> None:
    index = loaded(QUERIES[:3], COMPANIES)
    kept = []
    for symbol in ("none", "S3", "S3", "S4"):
        assert index.match(f"<trade symbol='{symbol}'/>".encode()) == []
        kept.append(index.stats().caches.records)
    assert 0 < kept[0] < kept[1] == kept[2] <= kept[3]


def test_queries_join_by_other_paths_and_keys() -> None:
    index = loaded(
        [
            "//trade[@symbol = collection('companies')/row/symbol]",
            "//trade/@symbol = collection('companies')/row[size = 3]/symbol",
            "//trade[@sector = collection('companies')/row/sector]",
            "/m/trade[collection('companies')/row[sector = 's4']/symbol = @symbol]",
            "//trade[@symbol = collection('companies')/*[not(sector = 's4')]/symbol/text()]",
            "//trade[@price > 5][@symbol = collection('companies')/row[sector = 's3']/symbol]",
            "//trade[@price > 5 or @symbol = collection('companies')/row[sector = 's4']/symbol]",
            "//trade[not(@symbol = collection('companies')/row/symbol)]",
        ],
        COMPANIES,
    )
    message = b"<m><trade symbol='S3' price='1'/><trade symbol='S14' price='9' sector='s1'/></m>"
    assert index.match(message) == [0, 1, 2, 3, 4, 6]
    assert index.match(b"<m><trade symbol='S3' price='6'/></m>") == [0, 1, 4, 5, 6]
    assert index.match(b"<m><trade symbol='x'/><row><symbol>x</symbol></row></m>") == [7]
    assert index.match(b"<m/>") == []


def test_transformations_are_found_by_their_conditions_on_records() -> None:
    form = (
        "for $t in //trade, $c in collection('companies')/row[symbol = $t/@symbol][sector = 's{}'] "
        "return <r>{{ $c/symbol/text() }}</r>"
    )
    where = (
        "for $t in //trade, $c in collection('companies')/row "
        "where $c/symbol = $t/@symbol and $c/sector = 's{}' return <w>{{ $c/symbol/text() }}</w>"
    )
    index = loaded([text.format(sector) for sector in range(100) for text in (form, where)], COMPANIES)
    found = work(index, b"<trade symbol='S14'/>")
    assert found["matches"] == 2
    assert found["candidates"] <= 101
    outputs = [output.payload for output in index.transform(b"<trade symbol='S14'/>")]
    assert outputs == [b"<r>S14</r>", b"<w>S14</w>"]


def test_records_are_no_part_of_the_message_for_others() -> None:
    index = loaded(
        [
            FORM.format(3, 1),
            "//row",
            "//*[symbol]",
            "count(//*) = 1",
            "//trade/following::symbol",
            "string(/) = ''",
            "for $x in //node() return <n>{ $x }</n>",
            "not(//size)",
        ],
        COMPANIES,
    )
    assert index.match(b"<trade symbol='S3'/>") == [0, 3, 5, 6, 7]
    found = index.match_elements([b"<trade symbol='S3'/>"]).rows.to_pylist()
    assert {row["node"] for row in found} <= {0, 1}


def test_data_that_cannot_serve_a_join_leaves_it_to_verification(tmp_path: Path) -> None:
    index = loaded([FORM.format(3, 1), "//trade", "//trade[@x]" + FORM.format(3, 1)[7:]], COMPANIES)
    index.snapshot(tmp_path)
    opened = Index.open(tmp_path)
    with pytest.raises(tamis.MatchError, match="unknown-data") as failed:
        opened.match(b"<trade symbol='S3' x=''/>")
    assert (failed.value.targets, failed.value.failed) == ([1], [0, 2])
    assert opened.match(b"<other/>") == []
    # Values too long for the index: few records are read one by one.
    long = b"<row><symbol>" + b"x" * 2000 + b"<i/></symbol><sector>s3</sector><size>2</size></row>"
    opened.attach("companies", Data([long, company(3)]))
    assert opened.match(b"<trade symbol='S3'/>") == [0, 1]
    assert opened.match(b"<trade symbol='" + b"x" * 2000 + b"'/>") == [0, 1]
    opened.attach("companies", COMPANIES)
    assert opened.match(b"<trade symbol='S3'/>") == [0, 1]


def test_a_message_meets_a_limited_number_of_records() -> None:
    same = Data([b"<row><symbol>S</symbol></row>"] * 100)
    index = loaded(["//trade[@symbol = collection('companies')/row/symbol]"], same)
    assert index.match(b"<trade symbol='S'/>", limits=tamis.Limits(tuples=100)) == [0]
    with pytest.raises(ReadError) as refused:
        index.match(b"<trade symbol='S'/>", limits=tamis.Limits(tuples=99))
    assert (refused.value.code, refused.value.value, refused.value.limit) == ("tuples-limit", 100, 99)


def test_tenants_do_not_join_for_others() -> None:
    index = Index()
    index.attach("companies", COMPANIES, tenant="a")
    index.insert(1, FORM.format(3, 1), tenant="a")
    index.insert(2, "//trade", tenant="b")
    (row,) = index.match_batch([b"<trade symbol='S3'/>"], tenant="b").to_pylist()
    assert (row["probes"], row["records"], len(row["queries"])) == (0, 0, 1)
    (row,) = index.match_batch([b"<trade symbol='S3'/>"], tenant="a").to_pylist()
    assert (row["probes"], row["records"], len(row["queries"])) == (1, 1, 1)
