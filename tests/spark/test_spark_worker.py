"""The tasks of a Python worker on Arrow batches, without Spark."""

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis import Limits
from tamis.spark.worker import generations, offsets
from tamis.spark.worker.offsets import split_rows
from tamis.spark.worker.positions import expand_to_targets
from tamis.spark.worker.task import MAX_VALUES, MatchTask


def matching(index: tamis.Index, folder: Path, **options: Any) -> MatchTask:
    """Matching the second column, with the first one kept."""
    index.snapshot(folder)
    defaults: dict[str, Any] = {"tenant": "", "tenant_column": None, "limits": Limits(), "elements": 0}
    return MatchTask(generation=index.saved, message=1, kept=1, **(defaults | options))


def batch(messages: list[bytes | None], *more: Any, kind: Any = None) -> pa.RecordBatch:
    columns = [pa.array(range(len(messages))), pa.array(messages, kind or pa.binary()), *map(pa.array, more)]
    return pa.record_batch(columns, [f"c{place}" for place in range(len(columns))])


def targets(made: pa.RecordBatch) -> int:
    """The number of targets in a batch."""
    lists: Any = made.column("targets")
    return len(lists.flatten())


def run(step: MatchTask, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for out in step.run(iter(batches)) for row in out.to_pylist()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_messages_of_every_type(tmp_path: Path, kind: Any) -> None:
    index = tamis.Index()
    index.insert(1, "//b")
    index.insert(2, "/a")
    good, bad, null = run(matching(index, tmp_path), batch([b"<a><b/></a>", b"<a", None], kind=kind))
    assert (good["c0"], good["targets"], good["error"]) == (0, [1, 2], None)
    assert (bad["targets"], bad["error"]["code"], bad["error"]["column"]) == ([], "truncated", 3)
    assert null["error"]["code"] == "no-message"


def test_targets_are_64_bits(tmp_path: Path) -> None:
    index = tamis.Index()
    for target in (0, 2**63 - 1, 2**63, 2**64 - 1):
        index.insert(target, "/a")
    (row,) = run(matching(index, tmp_path), batch([b"<a/>"]))
    assert [target % 2**64 for target in row["targets"]] == [0, 2**63 - 1, 2**63, 2**64 - 1]


def test_empty_batches_and_no_batches(tmp_path: Path) -> None:
    index = tamis.Index()
    step = matching(index, tmp_path)
    assert run(step) == run(step, batch([])) == []
    assert len(run(step, batch([]), batch([b"<a/>"]))) == 1


def test_a_dense_result_is_cut(tmp_path: Path) -> None:
    """By targets, though there is one query only: a query can lead to any number of them."""
    index = tamis.Index()
    index.load(pa.table({"target": pa.array(range(5_000), pa.uint64()), "query": ["/a"] * 5_000}))
    given = batch([*[b"<a/>"] * 1_000, *[b"<b/>"] * 1_000])
    made = list(matching(index, tmp_path).run(iter([given])))
    sizes = list(map(targets, made))
    assert sum(sizes) == 5_000_000
    assert max(sizes) <= MAX_VALUES
    assert len(sizes) == 5
    rows = pa.Table.from_batches(made)
    assert rows.column("c0").to_pylist() == list(range(2_000))
    assert rows.column("targets")[999].as_py() == list(range(5_000))


def test_outputs_are_cut_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One output of a message crosses once, however many targets it is made for."""
    index = tamis.Index()
    for target in range(50):
        index.insert(target, f"for $a in /a where $a/@n > {target % 5} return <copy>{{ $a }}</copy>")
    index.insert(99, "/a")
    messages: list[bytes | None] = [b"<a n='%d'>%s</a>" % (n % 7, b"x" * 100) for n in range(40)]
    step = matching(index, tmp_path, transforms=True)
    whole = run(step, batch(messages))
    monkeypatch.setattr("tamis.spark.worker.task.MAX_BYTES", 1_000)
    pieces = list(step.run(iter([batch(messages)])))
    assert len(pieces) > 4
    assert [row for piece in pieces for row in piece.to_pylist()] == whole
    for row, message in zip(whole, messages, strict=True):
        expected = {output.target: output.payload for output in index.transform(message or b"")}
        outputs = {
            target: message if made["output"] is None else row["outputs"][made["output"] - 1]
            for target, made in zip(row["targets"], row["made"], strict=True)
        }
        assert outputs == expected
        assert len(row["outputs"]) == (1 if len(expected) > 1 else 0)


def test_many_queries_are_cut_too(tmp_path: Path) -> None:
    index = tamis.Index()
    names = [f"n{number}" for number in range(1_000)]
    texts = [f"//{name}" for name in names]
    index.load(pa.table({"target": pa.array(range(1_000), pa.uint64()), "query": texts}))
    message = f"<r>{''.join(f'<{name}/>' for name in names)}</r>".encode()
    step = matching(index, tmp_path, elements=1)
    made = list(step.run(iter([batch([message, b"<r/>"] * 600)])))
    assert len(made) == 2
    for out in made:
        for row in out.slice(0, 2).to_pylist():
            assert [len(nodes) for nodes in row["elements"]] == [1] * len(row["targets"])
    assert sum(map(targets, made)) == 600_000


def test_the_examples_in_the_worker_s_modules() -> None:
    assert doctest.testmod(offsets).failed == 0
    targets = pa.array([[10, 20], [20, 30]])
    rows = pa.record_batch([pa.array([5, 6])], ["message"])
    row, position = expand_to_targets(targets, rows, pa.array([[20], [20, 30]]), first_message=5)
    assert (row.tolist(), position.tolist()) == ([0, 1, 1], [1, 2, 3])


def test_a_single_message_may_have_more_than_a_batch() -> None:
    ends = np.array([0, 5, 5, 50, 51, 55, 60])
    assert list(split_rows(ends, 10)) == [(0, 2), (2, 3), (3, 6)]
    assert list(split_rows(np.array([0]), 10)) == []


def test_each_message_is_matched_for_its_tenant(tmp_path: Path) -> None:
    index = tamis.Index()
    index.insert(1, "/a", tenant="one")
    index.insert(2, "/a", tenant="two")
    index.insert(3, "/a")
    step = matching(index, tmp_path, tenant_column=2, elements=5)
    tenants = ["two", "one", None, "", "nobody", "two", "one", None]
    messages: list[bytes | None] = [b"<a/>", b"<a/>", b"<a/>", b"<a/>", b"<a/>", b"<a", b" <a/>", None]
    rows = run(step, batch(messages, tenants))
    assert [row["c0"] for row in rows] == list(range(8))
    assert [row["targets"] for row in rows] == [[2], [1], [], [3], [], [], [1], []]
    codes = [row["error"] and row["error"]["code"] for row in rows]
    assert codes == [None, None, "no-tenant", None, None, "truncated", None, "no-tenant"]
    spans = [[node["span_start"] for nodes in row["elements"] for node in nodes] for row in rows]
    assert spans == [[0], [0], [], [0], [], [], [1], []]
    # The same with one tenant in the batch, and with none.
    assert [row["targets"] for row in run(step, batch([b"<a/>"] * 2, ["two"] * 2))] == [[2], [2]]
    nulls = pa.array([None, None], pa.string())
    assert [row["elements"] for row in run(step, batch([b"<a/>"] * 2, nulls))] == [[], []]


def test_elements_stand_beside_their_targets(tmp_path: Path) -> None:
    index = tamis.Index()
    index.insert(30, "//b")
    index.insert(10, "//b")
    index.insert(20, "not(//c)")
    index.insert(40, "//@x")
    step = matching(index, tmp_path, elements=2)
    first, second = run(step, batch([b"<a><b/><b x='1'/><b/></a>", b"<c/>"]))
    assert first["targets"] == [10, 20, 30, 40]
    places = [[(node["node"], node["kind"]) for node in nodes] for nodes in first["elements"]]
    both = [(2, "element"), (3, "element")]
    assert places == [both, [], both, [(3, "attribute")]]
    assert (second["targets"], second["elements"]) == ([], [])


def test_a_worker_keeps_one_generation_of_a_directory(tmp_path: Path) -> None:
    index = tamis.Index()
    index.insert(1, "/a")
    index.snapshot(tmp_path)
    old = index.saved
    kept = generations.opened(old).index
    assert generations.opened(old).index is kept
    index.insert(2, "/a")
    index.snapshot(tmp_path)
    assert generations.opened(index.saved).index.match(b"<a/>") == [1, 2]
    # It went over to the other generation, and goes back.
    assert generations.opened(old).index is kept
    assert kept.match(b"<a/>") == [1]
    assert generations.opened(old).index.match(b"<a/>") == [1]


def test_a_worker_keeps_few_directories(tmp_path: Path) -> None:
    index = tamis.Index()
    for number in range(2 * generations.DIRECTORIES):
        index.snapshot(tmp_path / str(number))
        generations.opened(index.saved)
    assert len(generations._open) == generations.DIRECTORIES


def test_brokers_that_share_a_worker_do_not_open_their_generations_again(tmp_path: Path) -> None:
    index = tamis.Index()
    brokers = []
    for number in range(6):
        index.snapshot(tmp_path / str(number))
        brokers.append(index.saved)
    first = [generations.opened(one).index for one in brokers]
    assert [generations.opened(one).index for one in brokers] == first


def test_a_generation_that_is_not_there_is_no_message_s_fault(tmp_path: Path) -> None:
    index = tamis.Index()
    index.snapshot(tmp_path)
    gone = tamis.Generation(index.saved.directory, 77)
    with pytest.raises(tamis.GenerationError, match="generation-77"):
        generations.opened(gone)
    assert generations.opened(index.saved).index.match(b"<a/>") == []


def test_an_index_without_files_says_what_to_do() -> None:
    with pytest.raises(tamis.GenerationError, match="take a snapshot"):
        _ = tamis.Index().saved
