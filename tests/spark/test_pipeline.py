"""One batch from envelopes to sinks: counted while the first sink writes it, and published once."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import DataFrame, SparkSession

from tamis.model.batch import Batch
from tamis.model.matching import Generation
from tamis.pipeline.batch_log import BatchLog, Counts
from tamis.pipeline.sample import MessageSample
from tamis.sinks.dead_letters import DeadLetters, LetterFilter
from tamis.sinks.outbox import Outbox
from tamis.sources.directory import DirectorySource
from tamis.spark.connectors.dead_letters import write_dead_letters
from tamis.spark.connectors.outbox import can_stage, stage_outbox, write_outbox
from tamis.spark.connectors.publishing import StagedBatch
from tamis.spark.pipeline import Pipeline, Sink
from tests.spark.test_match_and_transform import catalog, envelopes, generation

__all__ = ["catalog", "generation"]

TWICE = [
    ("x", "f.jsonl#1 at 0", b"<a>first</a>", None),
    ("x", "f.jsonl#2 at 40", b"<a>second</a>", None),
    ("y", "f.jsonl#3 at 80", b"<a><b/></a>", None),
    ("z", "f.jsonl#4 at 99", b"<c/>", None),
]


def pipeline_to(outbox: Outbox, letters: DeadLetters, generation: Generation, folder: Path) -> Pipeline:
    def write(rows: DataFrame, batch: Batch) -> None:
        write_outbox(rows, outbox, batch)

    def stage(rows: DataFrame, batch: Batch) -> StagedBatch:
        return stage_outbox(rows, outbox, batch)

    def write_letters(rows: DataFrame, batch: Batch) -> None:
        write_dead_letters(rows, letters, batch)

    source = DirectorySource("inbox", "t", folder / "inbox")
    sink = Sink(write, None, stage if can_stage(outbox) else None)
    return Pipeline(source, lambda _: generation, lambda: generation.number, [sink], write_letters)


def delivered(outbox: Outbox) -> list[tuple[str, str]]:
    rows = [row for one in outbox.published() for batch in outbox.read(one) for row in batch.to_pylist()]
    return sorted((row["message"], row["subscription"]) for row in rows)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_what_was_written_of_a_batch_with_duplicates_is_not_published(
    spark: SparkSession, generation: Generation, tmp_path: Path, form: Literal["parquet", "jsonl"]
) -> None:
    outbox, letters = Outbox(tmp_path / "outbox", form), DeadLetters(tmp_path / "dead")
    pipeline = pipeline_to(outbox, letters, generation, tmp_path)
    run = partial(pipeline.run, envelopes(spark, TWICE), 0, "")
    _, counts = run(BatchLog(tmp_path / "log", "c"))
    assert (counts.read, counts.matched, counts.dead, counts.deliveries) == (4, 2, 1, 5)
    expected = [("x", "q1"), ("x", "q2"), ("y", "q0"), ("y", "q1"), ("y", "q2")]
    assert delivered(outbox) == expected
    assert [letter.code for letter in letters.letters(LetterFilter())] == ["duplicate-id"]
    there = {str(path.relative_to(tmp_path / "outbox")) for path in tmp_path.glob("outbox/data/**/*.*")}
    assert there == {part.path for one in outbox.published() for part in one.parts}

    # The process was killed before it wrote that the batch is done.
    log = tmp_path / "log" / "c.jsonl"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    _, again = run(BatchLog(tmp_path / "log", "c"))
    assert counts_without_work(again) == counts_without_work(counts)
    assert delivered(outbox) == expected


def counts_without_work(counts: Counts) -> tuple[int, ...]:
    return (counts.read, counts.matched, counts.dead, counts.deliveries, counts.failed)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_messages_of_a_batch_are_sampled_once(
    spark: SparkSession, generation: Generation, tmp_path: Path, form: Literal["parquet", "jsonl"]
) -> None:
    outbox, letters = Outbox(tmp_path / "outbox", form), DeadLetters(tmp_path / "dead")
    sample = MessageSample(tmp_path / "sample.arrow")
    pipeline = replace(pipeline_to(outbox, letters, generation, tmp_path), sample=sample)
    log = BatchLog(tmp_path / "log", "c")
    pipeline.run(envelopes(spark, TWICE[1:3]), 0, "", log)
    pipeline.run(envelopes(spark, TWICE[2:]), 1, "", log)
    assert {one.message for one in sample.messages()} == {message for _, _, message, _ in TWICE[1:]}
    assert len(sample.messages()) == 3
    assert {one.tenant for one in sample.messages()} == {"t"}
    assert {(one.envelope.source, one.envelope.topic) for one in sample.messages() if one.envelope} == {
        ("inbox", None)
    }


def test_a_batch_without_deliveries_is_counted(
    spark: SparkSession, generation: Generation, tmp_path: Path
) -> None:
    outbox, letters = Outbox(tmp_path / "outbox"), DeadLetters(tmp_path / "dead")
    pipeline = pipeline_to(outbox, letters, generation, tmp_path)
    _, counts = pipeline.run(envelopes(spark, [TWICE[3]]), 0, "", BatchLog(tmp_path / "log", "c"))
    assert (counts.read, counts.unmatched, counts.deliveries) == (1, 1, 0)
    assert list(outbox.published()) == []
