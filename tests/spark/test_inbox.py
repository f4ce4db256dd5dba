"""An inbox as a Spark stream: every message once, also over restarts and crashes."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tamis.sources.directory import DirectorySource, Inbox, Offset
from tamis.spark.connectors.inbox import InboxReader, read_inbox
from tamis.spark.envelope import ENVELOPE_TYPE
from tests.helpers.inbox_files import drop, drop_lines, records


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    return DirectorySource("feed", "acme", tmp_path / "inbox", record="rec")


def start(spark: SparkSession, source: DirectorySource, folder: Path) -> StreamingQuery:
    """Everything that is there now, into Parquet files, with a checkpoint."""
    writer = read_inbox(spark, source).writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def run(spark: SparkSession, source: DirectorySource, folder: Path) -> list[int]:
    """The rows of each batch of a run."""
    query = start(spark, source, folder)
    query.awaitTermination()
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def output(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(ENVELOPE_TYPE).parquet(str(folder / "out"))


def ids(spark: SparkSession, folder: Path) -> Counter[str]:
    return Counter(row["id"] for row in output(spark, folder).select("id").collect())


def test_every_message_once_over_restarts(
    spark: SparkSession, source: DirectorySource, tmp_path: Path
) -> None:
    source = replace(source, max_records=400)
    drop(source.path, "big.xml", records(range(1000)))
    drop_lines(source.path, "lines.jsonl", {f"line-{n}": "<a/>" for n in range(50)})
    expected = Counter([*(f"big.xml#{n + 1}" for n in range(1000)), *(f"line-{n}" for n in range(50))])
    assert run(spark, source, tmp_path) == [400, 400, 250]
    assert ids(spark, tmp_path) == expected
    assert run(spark, source, tmp_path) == []

    drop(source.path, "broken.xml", b"<all><rec>1</rec><rec>")
    # The same name with other content.
    drop(source.path, "big.xml", records(range(3)))
    assert sum(run(spark, source, tmp_path)) == 5
    expected += Counter(["broken.xml#1", "broken.xml#2", *(f"big.xml~3#{n}" for n in (1, 2, 3))])
    assert ids(spark, tmp_path) == expected
    dead = output(spark, tmp_path).where("code is not null").collect()
    assert [(row["id"], row["code"], bytes(row["xml"])) for row in dead] == [
        ("broken.xml#2", "truncated-record", b"<rec>")
    ]
    # Files of committed batches are moved; those of the last batch wait for the next one.
    assert sorted(path.name for path in source.done.iterdir()) == ["lines.jsonl"]


def test_a_batch_is_replayed_after_a_crash(
    spark: SparkSession, source: DirectorySource, tmp_path: Path
) -> None:
    """The offsets of a batch are in Spark's log, and the batch was not committed: it is read again."""
    source = replace(source, max_records=60)
    drop(source.path, "a.xml", records(range(150)))
    assert run(spark, source, tmp_path) == [60, 60, 30]
    before = ids(spark, tmp_path)
    for name in ("commits/2", "commits/.2.crc"):
        (tmp_path / "checkpoint" / name).unlink()
    for part in (tmp_path / "out" / "_spark_metadata").glob("*2*"):
        part.unlink()
    assert run(spark, source, tmp_path) == [30]
    assert ids(spark, tmp_path) == before


def test_killed_between_ledger_and_offsets(
    spark: SparkSession, source: DirectorySource, tmp_path: Path
) -> None:
    """Files have their numbers, but no offset speaks of them yet."""
    drop(source.path, "a.xml", records(range(3)))
    Inbox(source, tasks=1).list_files(Offset(0))
    drop(source.path, "b.xml", records(range(2)))
    with source.ledger.open("ab") as ledger:
        ledger.write(b'[1, "b.x')
    run(spark, source, tmp_path)
    assert sorted(ids(spark, tmp_path).elements()) == ["a.xml#1", "a.xml#2", "a.xml#3", "b.xml#1", "b.xml#2"]


def test_two_thousand_tiny_files(spark: SparkSession, source: DirectorySource, tmp_path: Path) -> None:
    for number in range(2000):
        drop(source.path, f"{number}.xml", b"<rec/>")
    assert run(spark, source, tmp_path) == [2000]
    assert output(spark, tmp_path).select("id").distinct().count() == 2000
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 2


def test_messages_that_come_while_it_runs(
    spark: SparkSession, source: DirectorySource, tmp_path: Path
) -> None:
    writer = read_inbox(spark, source).writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for number in range(3):
            drop(source.path, f"{number}.xml", records(range(5)))
            query.processAllAvailable()
            assert ids(spark, tmp_path).total() == 5 * (number + 1)
    finally:
        query.stop()
    assert sorted(path.name for path in source.path.iterdir()) == ["2.xml"]


def test_a_ledger_that_is_older_than_the_checkpoint(
    spark: SparkSession, source: DirectorySource, tmp_path: Path
) -> None:
    """Nothing gets a number or is put away, until both are of one moment again."""
    drop(source.path, "a.xml", b"<rec/>")
    run(spark, source, tmp_path)
    older = source.ledger.read_bytes()
    for name in ("b.xml", "c.xml"):
        drop(source.path, name, b"<rec/>")
        run(spark, source, tmp_path)
    newer = source.ledger.read_bytes()
    source.ledger.write_bytes(older)
    drop(source.path, "d.xml", b"<rec/>")
    drop(source.path, "e.xml", b"<rec/>")
    for _ in range(2):
        with pytest.raises(
            StreamingQueryException, match=r"LedgerError: bad-ledger: .*older than the checkpoint"
        ):
            run(spark, source, tmp_path)
    assert source.ledger.read_bytes() == older
    assert sorted(path.name for path in source.path.iterdir()) == ["c.xml", "d.xml", "e.xml"]

    source.ledger.write_bytes(newer)
    assert run(spark, source, tmp_path) == [2]
    assert sorted(ids(spark, tmp_path).elements()) == [f"{name}.xml#1" for name in "abcde"]


def test_available_now_reads_the_present_files_only(source: DirectorySource) -> None:
    """A query for the available messages ends, even if more arrive in the meantime."""
    drop(source.path, "a.xml", b"<rec/>")
    reader = InboxReader(source, tasks=1)
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    end = reader.latestOffset(reader.initialOffset(), limit)
    assert end == {"file": 1, "position": None}
    drop(source.path, "b.xml", b"<rec/>")
    assert reader.latestOffset(end, limit) == end
    reader.stop()
