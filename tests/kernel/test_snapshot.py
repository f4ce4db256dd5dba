"""Snapshots: files that are shared, never rewritten, and refused when they are not whole."""

import multiprocessing
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import tamis

MESSAGE = b"<a><b x='1'>t</b><b x='2'/></a>"


def build(count: int = 100) -> tamis.Index:
    index = tamis.Index()
    index.load(pa.table({"target": range(count), "query": [f"//b[@x = {n}]" for n in range(count)]}))
    return index


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_snapshot_of_nothing_new_writes_nothing(tmp_path: Path) -> None:
    index = build()
    number = index.snapshot(tmp_path)
    before = names(tmp_path)
    assert index.snapshot(tmp_path) == number
    assert tamis.Index.open(tmp_path).snapshot(tmp_path) == number
    assert names(tmp_path) == before


def test_a_new_generation_is_the_old_files_plus_a_small_one(tmp_path: Path) -> None:
    index = build()
    first = index.snapshot(tmp_path)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    index.insert(1000, "/a")
    index.remove(2)
    second = index.snapshot(tmp_path)
    assert second > first
    assert set(sizes) < names(tmp_path)
    assert {name: (tmp_path / name).stat().st_size for name in sizes} == sizes
    assert tamis.Index.open(tmp_path).match(MESSAGE) == [1, 1000]
    assert tamis.Index.open(tmp_path, second).match(MESSAGE) == [1, 1000]
    assert tamis.Index.open(tmp_path, first).match(MESSAGE) == [1, 2]


def test_an_opened_index_can_be_changed_and_saved_again(tmp_path: Path) -> None:
    build().snapshot(tmp_path)
    index = tamis.Index.open(tmp_path)
    index.insert(1, "//c")
    index.insert(500, "//b", tenant="t")
    assert index.match(MESSAGE) == [2]
    index.snapshot(tmp_path)
    again = tamis.Index.open(tmp_path)
    assert again.match(MESSAGE) == [2]
    assert again.match(MESSAGE, tenant="t") == [500]
    again.merge()
    assert again.match(MESSAGE, tenant="t") == [500]


def test_another_index_in_the_same_directory_comes_next(tmp_path: Path) -> None:
    first = build()
    for target in range(5):
        first.insert(target, "/a")
        first.match(MESSAGE)
    number = first.snapshot(tmp_path)
    other = tamis.Index()
    other.insert(7, "//b")
    assert other.snapshot(tmp_path) > number
    assert tamis.Index.open(tmp_path).match(MESSAGE) == [7]


def test_statistics_are_those_of_the_files(tmp_path: Path) -> None:
    index = build()
    index.insert(1000, "//b[@x = 1]")
    index.snapshot(tmp_path)
    stats = index.stats()
    assert (stats.targets, stats.segments) == (101, 2)
    size = sum(path.stat().st_size for path in tmp_path.glob("*.segment"))
    assert stats.index_bytes == size
    assert stats.text_bytes == sum(path.stat().st_size for path in tmp_path.glob("*.texts"))
    index.match(MESSAGE)
    assert index.stats().cache_bytes > 0
    assert index.stats().sample >= 1


def test_an_empty_index_has_a_snapshot_too(tmp_path: Path) -> None:
    tamis.Index().snapshot(tmp_path / "new" / "folder")
    assert tamis.Index.open(tmp_path / "new" / "folder").match(MESSAGE) == []


@pytest.mark.parametrize("suffix", ["segment", "texts", "removed", "manifest"])
@pytest.mark.parametrize("harm", ["missing", "empty", "truncated", "other"])
def test_files_that_are_not_whole_are_refused(tmp_path: Path, suffix: str, harm: str) -> None:
    index = build()
    index.remove(3)
    number = index.snapshot(tmp_path)
    (path,) = tmp_path.glob(f"*.{suffix}")
    content = path.read_bytes()
    harmed = {"empty": b"", "truncated": content[: len(content) // 2 - 1], "other": b"\xff" * len(content)}
    path.unlink()
    if harm != "missing":
        path.write_bytes(harmed[harm])
    with pytest.raises(tamis.GenerationError) as caught:
        tamis.Index.open(tmp_path, number)
    assert path.stem in caught.value.reason


def test_missing_snapshots_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(tamis.GenerationError, match="no-snapshot"):
        tamis.Index.open(tmp_path)
    with pytest.raises(tamis.GenerationError, match="unreadable"):
        tamis.Index.open(tmp_path / "nowhere")
    build().snapshot(tmp_path)
    with pytest.raises(tamis.GenerationError, match="generation-99"):
        tamis.Index.open(tmp_path, 99)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tamis.GenerationError, match="unwritable"):
        build().snapshot(tmp_path / "file" / "below")


def test_pickling_is_by_reference(tmp_path: Path) -> None:
    index = build()
    with pytest.raises(tamis.GenerationError, match="snapshot"):
        pickle.dumps(index)
    index.snapshot(tmp_path)
    pickled = pickle.dumps(index)
    assert len(pickled) < 500
    assert pickle.loads(pickled).match(MESSAGE) == [1, 2]
    index.insert(1000, "/a")
    with pytest.raises(tamis.GenerationError, match="snapshot"):
        pickle.dumps(index)


def match_there(index: tamis.Index) -> list[int]:
    return index.match(MESSAGE)


def test_processes_map_one_snapshot(tmp_path: Path) -> None:
    index = build(1000)
    index.snapshot(tmp_path)
    opened = tamis.Index.open(tmp_path)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(match_there, [opened, index, opened]) == [[1, 2]] * 3


def save_there(folder: str, first: int) -> list[int]:
    index = tamis.Index()
    numbers = []
    for target in range(first, first + 10):
        index.insert(target, f"//b[@x = {target}]")
        numbers.append(index.snapshot(folder))
    return numbers


def test_processes_save_to_one_directory_under_numbers_of_their_own(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, two = pool.starmap(save_there, [(str(tmp_path), 0), (str(tmp_path), 100)])
    assert len({*one, *two}) == 20
    for number in (*one, *two):
        assert tamis.Index.open(tmp_path, number).stats().targets in range(1, 11)
    assert not list(tmp_path.glob("*.draft-*"))


def test_an_index_advances_to_the_next_generation_and_is_not_cold(tmp_path: Path) -> None:
    writer = tamis.Index()
    for target in range(100):
        writer.insert(target, f"//a[@n = {target}]")
    first = writer.snapshot(tmp_path)
    reader = tamis.Index.open(tmp_path, first)
    message = b"<a n='7'/>"
    assert reader.match(message) == [7]
    learnt = reader.stats().cache_states
    assert learnt > 0

    writer.insert(1_000, "//a")
    writer.remove(7)
    second = writer.snapshot(tmp_path)
    reader.advance(second)
    assert reader.stats().cache_states == learnt
    assert reader.match(message) == [1_000]
    assert reader.generation == second
    reader.advance(first)
    assert reader.match(message) == [7]

    reader.insert(5_000, "//b")
    with pytest.raises(tamis.GenerationError, match="not-saved"):
        reader.advance(second)
