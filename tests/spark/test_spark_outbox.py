"""Deliveries and dead letters on Spark: written by workers, published by the driver, once."""

import os
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from lxml import etree
from pyspark.sql import DataFrame, SparkSession

from tamis import SinkError
from tamis.model.batch import Batch
from tamis.sinks.dead_letters import LETTER, DeadLetters
from tamis.sinks.outbox import DELIVERY, Outbox
from tamis.spark.connectors.console import write_console
from tamis.spark.connectors.dead_letters import write_dead_letters
from tamis.spark.connectors.outbox import stage_outbox, write_outbox
from tests.helpers.delivery_rows import TIME, deliveries, delivery
from tests.helpers.spark_session import frame

BATCH = Batch("c1", 4)
ROWS = deliveries(range(100))


def rows_frame(
    spark: SparkSession,
    folder: Path,
    rows: list[dict[str, Any]],
    schema: pa.Schema = DELIVERY,
    files: int = 3,
) -> DataFrame:
    """Rows as a DataFrame of so many partitions."""
    table = pa.Table.from_pylist(rows, schema=schema)
    columns = {name: table.column(name) for name in table.column_names}
    return frame(spark, folder, columns, files).repartition(files)


def ids(outbox: Outbox) -> list[Any]:
    rows = (batch for publication in outbox.published() for batch in outbox.read(publication))
    return sorted(row for batch in rows for row in batch.column("id").to_pylist())


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_a_batch_is_published_once(
    spark: SparkSession, tmp_path: Path, form: Literal["parquet", "jsonl", "xml"]
) -> None:
    outbox = Outbox(tmp_path / "outbox", form)
    rows = rows_frame(spark, tmp_path / "rows", ROWS)
    assert write_outbox(rows, outbox, BATCH) == 100
    [first] = outbox.published()
    # Again, with other partitions: it is known.
    assert write_outbox(rows.repartition(5), outbox, BATCH) == 100
    assert [*outbox.published()] == [first]
    # And by a checkpoint that was reset: it is another batch.
    assert write_outbox(rows, outbox, Batch("c2", 4)) == 100
    assert len([*outbox.published()]) == 2
    if form == "xml":
        for part in first.parts:
            root = etree.parse(f"{tmp_path}/outbox/{part.path}").getroot()
            assert (root.get("tenant"), root.get("subscriber")) == (part.tenant, part.subscriber)
            wanted = [r for r in ROWS if (r["tenant"], r["subscriber"]) == (part.tenant, part.subscriber)]
            assert {child.get("id"): child[0].text for child in root} == {
                row["id"]: row["id"].removeprefix("d") for row in wanted
            }
    else:
        found = [row for batch in outbox.read(first) for row in batch.to_pylist()]
        assert sorted(found, key=lambda row: row["id"]) == sorted(ROWS, key=lambda row: row["id"])
    if form != "parquet":
        # One file for each subscriber, independent of the partitions.
        assert len(first.parts) == 4


def test_a_number_that_is_taken_is_given_to_another_batch(spark: SparkSession, tmp_path: Path) -> None:
    """As after a copy of a checkpoint was restored: what is planned now is not what was published."""
    outbox = Outbox(tmp_path / "outbox")
    rows = rows_frame(spark, tmp_path / "rows", ROWS)
    one, two = Batch("c", 4, "one"), Batch("c", 4, "two")
    assert write_outbox(rows.where("id < 'd5'"), outbox, one) > 0
    for _ in range(2):
        write_outbox(rows.where("id >= 'd5'"), outbox, two)
        assert ids(outbox) == sorted(row["id"] for row in ROWS)
    assert {publication.batch for publication in outbox.published()} == {one, two.renamed()}


def test_what_is_staged_counts_once_it_is_published(spark: SparkSession, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    rows = rows_frame(spark, tmp_path / "rows", ROWS)
    discarded = stage_outbox(rows, outbox, BATCH)
    assert discarded.written is not None
    assert ids(outbox) == []
    discarded.discard()
    assert not [path for path in tmp_path.glob("outbox/data/**/*") if path.is_file()]
    staged = stage_outbox(rows, outbox, BATCH)
    assert ids(outbox) == []
    assert staged.publish() == 100
    assert len(ids(outbox)) == 100
    # It is known now: nothing is written, and nothing that is published is removed.
    again = stage_outbox(rows.limit(1), outbox, BATCH)
    assert again.written is None
    assert again.publish() == 100
    again.discard()
    assert len(ids(outbox)) == 100


def test_files_of_another_attempt_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    for partition in range(7):
        outbox.write(BATCH, partition, pa.Table.from_pylist(ROWS[partition::7], schema=DELIVERY).to_batches())
    assert ids(outbox) == []
    write_outbox(rows_frame(spark, tmp_path / "rows", ROWS), outbox, BATCH)
    assert ids(outbox) == sorted(row["id"] for row in ROWS)
    [publication] = outbox.published()
    there = {
        str(path.relative_to(outbox.url))
        for path in (tmp_path / "outbox" / "data").rglob("*")
        if path.is_file()
    }
    assert there == {part.path for part in publication.parts}


def test_no_rows_are_no_batch(spark: SparkSession, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    rows = rows_frame(spark, tmp_path / "rows", ROWS).where("id = 'none'")
    assert write_outbox(rows, outbox, BATCH) == 0
    assert ids(outbox) == []


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_a_full_disk_is_reported_and_retried(
    spark: SparkSession, tmp_path: Path, small_disk: Path, form: Literal["parquet", "jsonl", "xml"]
) -> None:
    rows = [delivery(n, f"bob{n}", payload=b"<a>%s</a>" % os.urandom(1500).hex().encode()) for n in range(50)]
    made = rows_frame(spark, tmp_path / "rows", rows)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(200_000))
    outbox = Outbox(small_disk / "outbox", form)
    with pytest.raises(SinkError, match="make room") as error:
        write_outbox(made, outbox, BATCH)
    assert error.value.code == "sink-full"
    assert ids(outbox) == []
    # Not a byte is left of it.
    assert not [
        path for path in (small_disk / "outbox").rglob("*") if path.is_file() and path.name != ".lock"
    ]
    ballast.unlink()
    assert write_outbox(made, outbox, BATCH) == 50


def test_dead_letters_are_published_once(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {
            "tenant": "t", "source": "inbox", "id": f"m{number}", "offset": f"{number}", "received": TIME,
            "code": "bad", "reason": "so bad", "raw": b"\xff" * number,
            **dict.fromkeys(("position", "line", "column"), number or None),
            **dict.fromkeys(("encoding", "headers", "subscription", "delivery")),
        }
        for number in range(10)
    ]  # fmt: skip
    letters = DeadLetters(tmp_path / "dead")
    made = rows_frame(spark, tmp_path / "rows", rows, LETTER)
    assert write_dead_letters(made, letters, BATCH) == 10
    assert write_dead_letters(made, letters, BATCH) == 10
    [publication] = letters.published()
    found = [row for batch in letters.read(publication) for row in batch.to_pylist()]
    assert sorted(found, key=lambda row: row["id"]) == rows


def test_the_console_shows_a_few(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [delivery(number, payload=b"<a>\x1b[31m\n[bold]" + b"x" * 10_000) for number in range(5)]
    write_console(rows_frame(spark, tmp_path / "rows", rows), limit=3)
    out = capsys.readouterr().out
    *lines, more = out.splitlines()
    assert (len(lines), more) == (3, "…")
    assert all(len(line) <= 80 and line.startswith("bob s") and "<a>·[31m [bold]x" in line for line in lines)
    assert "\x1b" not in out
