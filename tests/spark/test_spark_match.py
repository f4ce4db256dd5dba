"""Matching DataFrames, on a real local Spark."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tamis
from tamis import FrameError, Limits
from tamis.spark import match, with_matches
from tests.helpers import random_documents as documents
from tests.helpers.hostile_messages import MESSAGES
from tests.helpers.spark_session import configured, frame
from tests.helpers.waiting import until
from tests.kernel.test_random import Group

SEED = 20261


def random_index(random: Random) -> tuple[tamis.Index, list[bytes]]:
    """Queries under numbers far from their places, half of them under two; and messages."""
    group = Group(random)
    index = tamis.Index()
    for place, query in enumerate(group.queries):
        index.insert(10 * place, query.text, namespaces=documents.NAMESPACES)
        if place % 2:
            index.insert(10 * place + 1, query.text, namespaces=documents.NAMESPACES)
    return index, group.messages


def small_index(folder: Path) -> tamis.Index:
    index = tamis.Index()
    index.insert(1, "/a")
    index.insert(2, "//b[@x = 1]")
    index.snapshot(folder)
    return index


def test_both_functions_agree_with_the_index(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(SEED)
    for number in range(3):
        index, messages = random_index(random)
        index.snapshot(tmp_path / f"index-{number}")
        columns = {
            "id": range(len(messages)),
            "xml": pa.array(messages, pa.binary()),
            "more": ["m"] * len(messages),
        }
        df = frame(spark, tmp_path / f"messages-{number}", columns, files=3)
        expected = {place: index.match(message) for place, message in enumerate(messages)}
        assert any(expected.values())

        arrays = with_matches(df, index, message="xml")
        assert arrays.columns == [
            "id",
            "more",
            "targets",
            "candidates",
            "work",
            "failed",
            "skipped_entities",
            "error",
        ]
        assert {row.id: row.targets for row in arrays.collect()} == expected

        rows = match(df, index.saved, message="xml", keep=["id"])
        assert rows.columns == ["id", "target", "error"]
        pairs = sorted((row.id, row.target) for row in rows.collect())
        assert pairs == [(place, target) for place in sorted(expected) for target in expected[place]]


def test_elements_agree_with_the_index(spark: SparkSession, tmp_path: Path) -> None:
    index, messages = random_index(Random(SEED))
    index.snapshot(tmp_path / "index")
    df = frame(spark, tmp_path / "messages", {"id": range(len(messages)), "message": messages})
    found = index.match_elements(messages, limit=3)
    expected: dict[tuple[int, int], list[tuple[Any, ...]]] = {
        (place, target): [] for place, message in enumerate(messages) for target in index.match(message)
    }
    for row, targets in zip(found.rows.to_pylist(), index.targets(found.rows).to_pylist(), strict=True):
        for target in targets or ():
            node = tuple(row[name] for name in ("node", "kind", "attribute", "span_start", "span_end"))
            expected[row["message"], target].append(node)
    rows = match(df, index, elements=3)
    assert rows.columns == ["id", "target", "elements", "error"]
    assert {
        (row.id, row.target): [tuple(node) for node in row.elements] for row in rows.collect()
    } == expected


@pytest.mark.parametrize("large", ["false", "true"])
@pytest.mark.parametrize("limits", [Limits(), Limits(internal_subset=True)])
def test_malformed_messages_of_every_kind(
    spark: SparkSession, tmp_path: Path, limits: Limits, large: str
) -> None:
    """Each becomes a row with the error that reading it gives, among good ones that match."""
    index = small_index(tmp_path / "index")
    messages: list[bytes | None] = [None]
    for attack in MESSAGES.values():
        if attack.limits == limits:
            messages += [attack.make(), b"<a><b x='1'/></a>"]
    df = frame(spark, tmp_path / "messages", {"id": range(len(messages)), "message": pa.array(messages)})
    with configured(spark, {"spark.sql.execution.arrow.useLargeVarTypes": large}):
        rows = match(df, index, limits=limits).collect()
        arrays = with_matches(df, index, limits=limits).collect()
    refused = {row["message"]: row for row in tamis.read_batch(messages, limits).errors.to_pylist()}
    assert len(refused) == (len(messages) + 1) // 2
    for row in rows:
        if row.error is None:
            assert (messages[row.id], row.target) in {(b"<a><b x='1'/></a>", 1), (b"<a><b x='1'/></a>", 2)}
        else:
            assert row.target is None
            assert row.error.asDict() | {"message": row.id} == refused[row.id]
    assert len(rows) == len(refused) + 2 * (len(messages) - len(refused))
    assert {row.id for row in arrays if row.error is not None} == refused.keys()
    assert len(arrays) == len(messages)


def test_tenants(spark: SparkSession, tmp_path: Path) -> None:
    index = tamis.Index()
    for target, tenant in enumerate(["", "one", "two"]):
        index.insert(target, "/a", tenant=tenant)
    index.snapshot(tmp_path / "index")
    tenants = ["one", "two", None, "one", "", "three"] * 50
    df = frame(spark, tmp_path / "messages", {"message": ["<a/>"] * 300, "who": tenants}, files=2)
    rows = match(df, index, tenant_column="who").collect()
    got = {(row.who, row.target, row.error and row.error.code) for row in rows}
    assert got == {("one", 1, None), ("two", 2, None), ("", 0, None), (None, None, "no-tenant")}
    assert len(rows) == 250
    assert {row.target for row in match(df, index, tenant="two").collect()} == {2}


def test_strings_and_names_that_sql_would_read_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    index = small_index(tmp_path / "index")
    columns = {"a.b": [7], "back`tick": ["é"], "select": ["<a>é</a>"], "deep": [{"x": [1, None]}]}
    df = frame(spark, tmp_path / "messages", columns)
    (row,) = match(df, index, message="select").collect()
    assert (row["a.b"], row["back`tick"], row["deep"].x, row.target) == (7, "é", [1, None], 1)
    (row,) = with_matches(df, index, message="select", keep=["select", "a.b"]).collect()
    assert (row["select"], row["a.b"], row.targets) == ("<a>é</a>", 7, [1])


@pytest.mark.parametrize(
    ("code", "ask"),
    [
        ("no-column", lambda df, index: match(df, index, message="xml")),
        ("no-column", lambda df, index: with_matches(df, index, keep=["nothing"])),
        ("no-column", lambda df, index: with_matches(df, index, tenant_column="nobody")),
        ("no-column", lambda df, index: match(df.selectExpr("*", "id"), index)),
        ("column-type", lambda df, index: match(df, index, message="id")),
        ("column-type", lambda df, index: match(df, index, tenant_column="id")),
        ("column-taken", lambda df, index: match(df.withColumnRenamed("id", "Target"), index)),
        ("column-taken", lambda df, index: with_matches(df.withColumnRenamed("id", "error"), index)),
        ("two-tenants", lambda df, index: match(df, index, tenant="one", tenant_column="who")),
    ],
)
def test_invalid_arguments_are_refused_at_once(
    spark: SparkSession, tmp_path: Path, code: str, ask: Callable[[DataFrame, tamis.Index], DataFrame]
) -> None:
    df = spark.createDataFrame([(1, "<a/>", "one")], "id int, message string, who string")
    with pytest.raises(FrameError) as caught:
        ask(df, small_index(tmp_path))
    assert caught.value.code == code


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    index = small_index(tmp_path / "index")
    messages = ["<a><b x='1'/></a>", "<a/>", "<c/>", "<a"] * 10
    df = frame(spark, tmp_path / "messages", {"id": range(40), "message": messages}, files=4)
    stream = (
        spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "messages"))
    )
    for name, result in (("rows", match(stream, index)), ("arrays", with_matches(stream, index))):
        query = (
            result.writeStream.format("memory")
            .queryName(name)
            .option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [progress.batchId for progress in query.recentProgress if progress.numInputRows]
        assert batches == [0, 1, 2, 3]
    rows = spark.table("rows").collect()
    assert sorted((row.id % 4, row.target) for row in rows if row.error is None) == sorted(
        [(0, 1), (0, 2), (1, 1)] * 10
    )
    assert sorted(row.id for row in rows if row.error is not None) == list(range(3, 40, 4))
    assert {row.id for row in spark.table("arrays").collect()} == set(range(40))


def test_a_dense_result_crosses_in_pieces(spark: SparkSession, tmp_path: Path) -> None:
    index = tamis.Index()
    index.load(pa.table({"target": pa.array(range(5_000), pa.uint64()), "query": ["/a"] * 5_000}))
    index.snapshot(tmp_path / "index")
    df = frame(spark, tmp_path / "messages", {"id": range(2_000), "message": ["<a/>"] * 2_000})
    summed = match(df, index).groupBy().sum("target", "id").collect()[0]
    assert list(summed) == [2_000 * sum(range(5_000)), 5_000 * sum(range(2_000))]


def mapping(path: Path) -> dict[int, str]:
    """The processes that map a file, but this one, and the file's device and inode as they see it."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.endswith(str(path)) and int(process.name) != os.getpid():
                found[int(process.name)] = " ".join(line.split()[3:5])
    return found


def both_of(found: dict[int, str]) -> dict[int, str] | None:
    return found if len(found) == 2 else None


def held_back(gate: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step that hands its first batch on, and the others when a file is there."""
    # Its own words only: the workers know nothing of the tests' modules.
    name = str(gate)

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time
        from pathlib import Path

        for number, batch in enumerate(batches):
            while number and not Path(name).exists():
                time.sleep(0.02)
            yield batch

    return hold


class Running:
    """A job in a thread, paused in the middle of its tasks."""

    def __init__(self, df: DataFrame, index: tamis.Index, gate: Path) -> None:
        self.gate = gate
        self.rows: list[Any] = []
        held = df.mapInArrow(held_back(gate), df.schema)
        self.thread = threading.Thread(target=lambda: self.rows.extend(with_matches(held, index).collect()))

    def __enter__(self) -> "Running":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.touch()
        self.thread.join()


def test_workers_share_one_mapping_and_one_may_die(spark: SparkSession, tmp_path: Path) -> None:
    index = small_index(tmp_path / "index")
    (segment,) = (tmp_path / "index").glob("*.segment")
    messages = ["<a><b x='1'/></a>", "<c/>"] * 1_000
    df = frame(spark, tmp_path / "messages", {"id": range(2_000), "message": messages}, files=2)
    df = df.repartition(2)
    small = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
    with configured(spark, small), Running(df, index, tmp_path / "gate") as running:
        both = until(lambda: both_of(mapping(segment)), "two workers with the index open")
        assert len(set(both.values())) == 1, "the same file: one copy in memory"
        for process in both:
            assert private_dirty(process, segment) == 0
        os.kill(min(both), signal.SIGKILL)
        until(lambda: min(both) not in mapping(segment), "the worker's end")
    assert sorted((row.id, tuple(row.targets)) for row in running.rows) == [
        (place, () if place % 2 else (1, 2)) for place in range(2_000)
    ]


def private_dirty(process: int, path: Path) -> int:
    """KiB of a mapped file that a process has made its own."""
    total, within = 0, False
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            within = line.endswith(str(path))
        elif within and line.startswith("Private_Dirty:"):
            total += int(line.split()[1])
    return total
