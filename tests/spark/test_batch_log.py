"""The batch log, and its state after a crash."""

from pathlib import Path

import pytest

from tamis.errors import StoreError
from tamis.model.batch import Batch
from tamis.pipeline import batch_log as module
from tamis.pipeline.batch_log import BatchLog, Counts


def never() -> int:
    raise AssertionError("a batch that has begun is not given another generation")


def test_a_batch_that_is_run_again_has_its_generation_and_time(tmp_path: Path) -> None:
    first = BatchLog(tmp_path, "c").begin(0, lambda: 7)
    assert first.generation == 7
    again = BatchLog(tmp_path, "c")
    assert again.begin(0, never) == first
    assert again.unfinished() == [first]
    again.finish(0, Counts(read=3, matched=1, dead=1, deliveries=4, candidates=9))
    again.finish(0, Counts())
    (known,) = BatchLog(tmp_path, "c").records()
    assert known.counts == Counts(3, 1, 1, 4, 9)
    assert known.counts is not None
    assert known.counts.unmatched == 1
    assert BatchLog(tmp_path, "c").unfinished() == []


def test_generations_never_go_back(tmp_path: Path) -> None:
    batches = BatchLog(tmp_path, "c")
    assert batches.begin(0, lambda: 5).generation == 5
    assert batches.begin(1, lambda: 3).generation == 5
    assert BatchLog(tmp_path, "c").begin(2, lambda: 4).generation == 5


def test_a_batch_whose_generation_is_lost_gets_another_one(tmp_path: Path) -> None:
    batches = BatchLog(tmp_path, "c")
    assert batches.last_generation == -1
    first = batches.begin(0, lambda: 5)
    batches.replace_generation(0, 6)
    for known in (batches, BatchLog(tmp_path, "c")):
        (record,) = known.unfinished()
        assert (record.generation, record.begun) == (6, first.begun)
        assert known.last_generation == 6


def test_a_number_with_another_plan_is_another_batch(tmp_path: Path) -> None:
    """As after an older copy of a checkpoint was restored: its numbers are given out again."""
    batches = BatchLog(tmp_path, "c")
    first = batches.begin(0, lambda: 5, "one")
    batches.finish(0, Counts(read=3))
    assert batches.begin(0, never, "one").counts == Counts(read=3)
    assert batches.batch_id(0) == Batch("c", 0, "one")
    again = batches.begin(0, lambda: 6, "two")
    assert (again.generation, again.counts) == (6, None)
    assert again.begun > first.begun
    assert batches.batch_id(0).differs_from(Batch("c", 0, "one"))
    assert str(batches.batch_id(0)) == "c-0"
    assert str(batches.batch_id(0).renamed()) == "c~two-0"
    known = BatchLog(tmp_path, "c")
    assert known.unfinished() == [again]
    assert known.batch_id(0) == Batch("c", 0, "two")


def test_the_batches_of_all_sources_are_found(tmp_path: Path) -> None:
    BatchLog(tmp_path / "inbox", "one").begin(0, lambda: 5)
    BatchLog(tmp_path / "inbox", "two").begin(0, lambda: 7)
    BatchLog(tmp_path / "feed", "three").begin(0, lambda: 6)
    assert sorted(batches.last_generation for batches in module.all_batch_logs(tmp_path)) == [5, 6, 7]
    assert list(module.all_batch_logs(tmp_path / "nowhere")) == []


def test_another_checkpoint_has_another_log(tmp_path: Path) -> None:
    BatchLog(tmp_path, "one").begin(0, lambda: 5)
    assert BatchLog(tmp_path, "two").begin(4, lambda: 3).generation == 3
    assert str(BatchLog(tmp_path, "two").batch_id(4)) == str(Batch("two", 4)) == "two-4"


def test_a_line_that_a_crash_cut_short_is_forgotten(tmp_path: Path) -> None:
    batches = BatchLog(tmp_path, "c")
    batches.begin(0, lambda: 1)
    path = tmp_path / "c.jsonl"
    whole = path.read_bytes()
    batches.begin(1, lambda: 2)
    text = path.read_bytes()
    for cut in range(len(whole), len(text)):
        path.write_bytes(text[:cut])
        again = BatchLog(tmp_path, "c")
        assert [record.batch for record in again.records()] == [0]
        assert again.begin(1, lambda: 3).generation == 3
        assert [record.batch for record in BatchLog(tmp_path, "c").records()] == [0, 1]


def test_a_line_that_finds_no_room_leaves_nothing_behind(small_disk: Path) -> None:
    batches = BatchLog(small_disk, "c")
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (small_disk.stat().st_blksize * 60))
    failed = None
    for number in range(10_000):
        try:
            batches.begin(number, lambda: 1)
        except StoreError:
            failed = number
            break
    assert failed is not None
    assert [record.batch for record in batches.records()] == list(range(failed))
    filler.unlink()
    batches.begin(failed, lambda: 2)
    assert list(BatchLog(small_disk, "c").records()) == list(batches.records())


def test_a_long_file_is_cut_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINES", 40)
    batches = BatchLog(tmp_path, "c")
    for number in range(50):
        batches.begin(number, lambda: 1)
        batches.finish(number, Counts(read=number))
    cut = BatchLog(tmp_path, "c")
    assert [record.batch for record in cut.records()] == list(range(40, 50))
    assert list(BatchLog(tmp_path, "c").records()) == list(cut.records())
