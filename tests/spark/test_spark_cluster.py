"""Matching on a standalone cluster of two workers, by way of Spark Connect."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.connect.session import SparkSession

import tamis
from tamis.spark import match, with_matches
from tests.helpers.cluster import Cluster, connect_server, standalone_cluster
from tests.helpers.spark_session import frame


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def connected(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with connect_server(cluster.master, tmp_path_factory.mktemp("connect")) as address:
        session = SparkSession.builder.remote(address).create()
        try:
            yield session
        finally:
            session.stop()


@pytest.fixture
def index(tmp_path: Path) -> tamis.Index:
    index = tamis.Index()
    index.insert(1, "/a")
    index.insert(2, "//b[@x = 1]")
    index.snapshot(tmp_path / "index")
    return index


MESSAGES = [b"<a><b x='1'/></a>", b"<a/>", b"<c/>", b"<a", None]


def test_batch(connected: SparkSession, tmp_path: Path, index: tamis.Index) -> None:
    columns = {"id": range(500), "xml": pa.array(MESSAGES * 100, pa.binary())}
    df = frame(connected, tmp_path / "messages", columns, files=4)
    rows = match(df, index, message="xml", elements=1).collect()
    got = {(row.id % 5, row.target, row.error and row.error.code) for row in rows}
    assert got == {
        (0, 1, None), (0, 2, None), (1, 1, None), (3, None, "truncated"), (4, None, "no-message"),
    }  # fmt: skip
    assert len(rows) == 500
    assert {len(row.elements) for row in rows if row.error is None} == {1}
    arrays = with_matches(df, index.saved, message="xml").collect()
    assert {(row.id % 5, tuple(row.targets)) for row in arrays} == {
        (0, (1, 2)), (1, (1,)), (2, ()), (3, ()), (4, ()),
    }  # fmt: skip
    assert len(arrays) == 500


def test_both_workers_of_the_cluster_take_part(
    connected: SparkSession, cluster: Cluster, tmp_path: Path, index: tamis.Index
) -> None:
    columns = {"id": range(4_000), "message": pa.array([b"<a/>"] * 4_000)}
    df = frame(connected, tmp_path / "messages", columns, files=8)
    assert match(df, index).count() == 4_000
    executors = [list(folder.glob("app-*/*/stderr")) for folder in cluster.folders]
    assert all(executors), "an executor in the folder of each worker"


def test_stream(connected: SparkSession, tmp_path: Path, index: tamis.Index) -> None:
    messages = pa.array(MESSAGES * 4, pa.binary())
    df = frame(connected, tmp_path / "messages", {"id": range(20), "message": messages}, files=2)
    stream = connected.readStream.schema(df.schema).parquet(str(tmp_path / "messages"))
    query = (
        match(stream, index)
        .writeStream.format("memory")
        .queryName("rows")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = connected.table("rows").collect()
    assert sorted((row.id % 5, row.target) for row in rows if row.error is None) == sorted(
        [(0, 1), (0, 2), (1, 1)] * 4
    )
    assert len([row for row in rows if row.error is not None]) == 8
