"""Local data of several tenants in one index."""

import pickle
from pathlib import Path

import pytest

import tamis
from tamis.generations.opener import open_generation
from tamis.spark.worker.tenants import group_by_tenant, match_groups
from tamis.stored_data import build_data, open_data

QUERY = "//trade[@symbol = collection('watch')/row/symbol]"


def rows(*symbols: str) -> tamis.Data:
    return tamis.Data([f"<row><symbol>{symbol}</symbol></row>".encode() for symbol in symbols])


def trade(symbol: str) -> bytes:
    return f"<trade symbol='{symbol}'/>".encode()


@pytest.fixture
def index() -> tamis.Index:
    """Two tenants, which both have data of one name and the same query."""
    index = tamis.Index()
    for number, (tenant, symbol) in enumerate((("a", "IBM"), ("b", "SAP"))):
        index.attach("watch", rows(symbol), tenant=tenant)
        index.insert(number, QUERY, tenant=tenant)
    return index


def test_the_same_name_means_the_data_of_each_tenant(index: tamis.Index) -> None:
    for _ in range(2):
        assert index.match(trade("IBM"), tenant="a") == [0]
        assert index.match(trade("IBM"), tenant="b") == []
        assert index.match(trade("SAP"), tenant="b") == [1]
        assert index.match(trade("SAP"), tenant="a") == []
    assert index.explain(trade("SAP"), QUERY, tenant="b").matches
    assert not index.explain(trade("SAP"), QUERY, tenant="a").matches


def test_another_tenants_data_is_refused_as_data_that_is_not_there(index: tamis.Index) -> None:
    refused = []
    for tenant, query in (("c", QUERY), ("a", QUERY.replace("watch", "none"))):
        with pytest.raises(tamis.QueryError) as caught:
            index.insert(7, query, tenant=tenant)
        refused.append((caught.value.code, caught.value.reason.replace("none", "watch")))
    assert refused[0] == refused[1]
    assert refused[0][0] == "unknown-data"


def test_an_update_reaches_one_tenant(index: tamis.Index) -> None:
    assert index.match(trade("SAP"), tenant="a") == []
    index.attach("watch", rows("SAP"), tenant="a")
    assert index.match(trade("SAP"), tenant="a") == [0]
    assert index.match(trade("IBM"), tenant="b") == []


def test_a_batch_of_several_tenants_is_matched_with_the_data_of_each(index: tamis.Index) -> None:
    import pyarrow as pa

    tenants = ["a", "b", "a", "b", "c"]
    messages = pa.array([trade("IBM"), trade("IBM"), trade("SAP"), trade("SAP"), trade("IBM")])
    groups = group_by_tenant(messages, pa.array(tenants))
    matches = match_groups(index, groups, tamis.Limits())
    assert index.targets(matches).to_pylist() == [[0], [], [], [1], []]


def test_registered_queries_need_no_data_until_a_message_comes() -> None:
    import pyarrow as pa

    table = pa.table(
        {"target": [1, 2], "query": [QUERY, "//trade"], "prefixes": pa.array([0, 0], pa.uint32())}
    )
    index = tamis.Index()
    assert [row["row"] for row in index.load(table, namespaces=[{}]).to_pylist()] == [0]
    assert index.load_registered(table, namespaces=[{}]).num_rows == 0
    with pytest.raises(tamis.MatchError) as caught:
        index.match(trade("SAP"))
    assert (caught.value.code, caught.value.targets, caught.value.failed) == ("unknown-data", [2], [1])
    index.attach("watch", rows("SAP"))
    assert index.match(trade("SAP")) == [1, 2]


def test_other_processes_attach_data_in_files(tmp_path: Path) -> None:
    """As the workers of `tamis.spark.match` and `transform` do, and whoever unpickles an index."""
    first = build_data(tmp_path / "data", [rows("SAP").records])
    second = build_data(tmp_path / "data", [rows("IBM").records])
    index = tamis.Index()
    index.attach("watch", open_data(tmp_path / "data", first.manifest), tenant="a")
    index.insert(1, QUERY, tenant="a")
    index.snapshot(tmp_path / "index")
    before = index.saved
    opened = open_generation(before)
    for other in (opened.index, pickle.loads(pickle.dumps(index))):
        assert other.match(trade("SAP"), tenant="a") == [1]
        assert other.match(trade("IBM"), tenant="a") == []
    index.attach("watch", open_data(tmp_path / "data", second.manifest), tenant="a")
    index.snapshot(tmp_path / "index")
    after = open_generation(index.saved, opened)
    assert after.index is opened.index
    assert after.index.match(trade("IBM"), tenant="a") == [1]
    assert open_generation(before, after).index.match(trade("SAP"), tenant="a") == [1]
