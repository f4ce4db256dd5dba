"""How the kernel imports Arrow arrays: types, slices, chunks, nulls, and producers that break the rules."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis

TEXTS = ["<a/>", "<b>", None, "<a><c/></a>", "<d/>"]
KINDS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()]


class Producer:
    """Hands over what it is given as capsules."""

    def __init__(self, capsules: Any) -> None:
        self.capsules = capsules

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.capsules


class Stream:
    """Hands over what it is given as a stream's capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.capsule


def index_of_a() -> tamis.Index:
    index = tamis.Index()
    index.insert(7, "//a")
    return index


def outcomes(messages: Any) -> list[str]:
    """For each message `match`, `-`, or the code of its error."""
    rows = index_of_a().match_batch(messages).to_pylist()
    return [row["code"] or ("match" if row["queries"] else "-") for row in rows]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrays_slices_chunks_and_streams_are_the_same_messages(kind: "pa.DataType") -> None:
    whole: pa.Array[Any] = pa.array(TEXTS, pa.string()).cast(kind)
    expected = outcomes(whole)
    assert expected == ["match", "unclosed-element", "no-message", "match", "-"]
    chunks = pa.chunked_array([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 3), whole.slice(4)])
    assert outcomes(chunks) == outcomes(Stream(chunks.__arrow_c_stream__())) == expected
    for start in range(len(TEXTS)):
        assert outcomes(whole.slice(start)) == expected[start:]
        assert outcomes(whole.slice(start, 1)) == expected[start : start + 1]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrays_without_messages(kind: "pa.DataType") -> None:
    for none in (pa.array([], kind), pa.array(["<a/>"], pa.string()).cast(kind).slice(1)):
        assert outcomes(none) == []
    table = pa.schema([pa.field("message", kind)]).empty_table()
    assert outcomes(table.column("message")) == []


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1]),
        pa.nulls(1),
        pa.array([["<a/>"]]),
        pa.array(["<a/>"]).dictionary_encode(),
        pa.record_batch({"message": ["<a/>"]}),
    ],
    ids=lambda array: str(getattr(array, "type", "batch")),
)
def test_arrays_of_other_types_are_refused(array: Any) -> None:
    with pytest.raises(TypeError, match="messages are bytes or strings"):
        outcomes(array)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_a_load_takes_sliced_batches_of_any_strings(kind: "pa.DataType") -> None:
    batch = pa.record_batch(
        {
            "note": pa.array([[1]] * 4),
            "tenant": pa.array(["x", "one", None, "one"], pa.string()).cast(kind),
            "query": pa.array(["//x", "//a", "//b", None], pa.string()).cast(kind),
            "target": pa.array([1, 2, 3, 4], pa.uint64()),
        }
    )
    for given in (batch.slice(1, 3), pa.Table.from_batches([batch.slice(1, 1), batch.slice(2)])):
        index = tamis.Index()
        assert [(row["row"], row["code"]) for row in index.load(given).to_pylist()] == [(2, "empty")]
        assert index.match(b"<a><b/></a>", tenant="one") == [2]
        assert index.match(b"<a><b/></a>") == [3]
        assert index.load(given.slice(3)).num_rows == 0


def test_targets_of_a_slice_are_those_of_its_rows() -> None:
    index = index_of_a()
    matches = index.match_batch(["<a/>", "<b/>", "<a/>"])
    assert index.targets(matches).to_pylist() == [[7], [], [7]]
    assert index.targets(matches.slice(1, 2)).to_pylist() == [[], [7]]
    assert index.targets(matches.slice(3)).to_pylist() == []


def test_targets_are_of_lists_of_queries_only() -> None:
    index = index_of_a()
    matches = index.match_batch(["<a/>"])
    wrong = matches.set_column(0, "queries", pa.array([["x"]], pa.large_list(pa.string())))
    with pytest.raises(ValueError, match="lists that match_batch returns"):
        index.targets(wrong)


def test_a_capsule_is_consumed_once() -> None:
    producer = Producer(pa.array(["<a/>"]).__arrow_c_array__())
    assert outcomes(producer) == ["match"]
    with pytest.raises(ValueError, match="consumed before"):
        outcomes(producer)
    stream = Stream(pa.chunked_array([["<a/>"]]).__arrow_c_stream__())
    assert outcomes(stream) == ["match"]
    with pytest.raises(ValueError, match="consumed before"):
        outcomes(stream)


def test_a_stream_that_fails_says_why() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"target": pa.array([1], pa.uint64()), "query": ["//a"]})
        raise OSError("the disk is gone")

    schema = next(batches()).schema
    reader: Any = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(ValueError, match="the disk is gone"):
        tamis.Index().load(reader)


def test_a_refused_array_is_released() -> None:
    before = pa.total_allocated_bytes()
    for _ in range(10):
        with pytest.raises(TypeError):
            outcomes(Producer(pa.array([0] * 100_000).__arrow_c_array__()))
    assert pa.total_allocated_bytes() < before + 1_000_000


@pytest.mark.parametrize(
    "capsules",
    [
        lambda: None,
        lambda: (),
        lambda: (1, 2),
        lambda: pa.array(["<a/>"]).__arrow_c_array__()[:1],
        lambda: pa.array(["<a/>"]).__arrow_c_array__()[::-1],
        lambda: pa.chunked_array([["<a/>"]]).__arrow_c_stream__(),
        lambda: (pa.chunked_array([["<a/>"]]).__arrow_c_stream__(),) * 2,
    ],
    ids=["none", "empty", "numbers", "one", "reversed", "stream", "streams"],
)
def test_other_capsules_are_refused(capsules: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        outcomes(Producer(capsules()))


@pytest.mark.parametrize(
    "capsule", [None, 1, pa.array(["<a/>"]).__arrow_c_array__()[1]], ids=["none", "number", "array"]
)
def test_other_capsules_are_no_streams(capsule: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        outcomes(Stream(capsule))


def offsets(*numbers: int) -> "pa.Buffer":
    return pa.py_buffer(np.array(numbers, np.int32).tobytes())


@pytest.mark.parametrize("kind", [pa.binary(), pa.string()], ids=str)
@pytest.mark.parametrize("ends", [(0, 9, 4), (0, -1, 4), (4, 0, 4)], ids=str)
def test_offsets_out_of_order_are_refused(kind: "pa.DataType", ends: tuple[int, ...]) -> None:
    array = pa.Array.from_buffers(kind, 2, [None, offsets(*ends), pa.py_buffer(b"<a/><a/>")])
    with pytest.raises(ValueError, match="damaged"):
        outcomes(array)


def test_views_beyond_their_buffers_are_refused() -> None:
    message = "<a>" + "x" * 20 + "</a>"
    good = pa.array([message], pa.string_view())
    assert outcomes(good) == ["match"]
    _, views, data = good.buffers()
    assert views is not None
    moved = bytearray(views.to_pybytes())
    moved[12:16] = (1000).to_bytes(4, "little")
    with pytest.raises(ValueError, match="damaged"):
        outcomes(pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(bytes(moved)), data]))


def test_queries_that_are_not_utf8_are_refused_whole() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets(0, 3), pa.py_buffer(b"/\xff\xfe")])
    table = pa.table({"target": pa.array([1], pa.uint64()), "query": broken})
    with pytest.raises(ValueError, match="damaged"):
        tamis.Index().load(table)


def test_messages_that_are_not_utf8_are_errors_of_their_own() -> None:
    ends, data = offsets(0, 4, 9), pa.py_buffer(b"<a/><\xff\xfe/>")
    array = pa.Array.from_buffers(pa.string(), 2, [None, ends, data])
    assert outcomes(array)[0] == "match"
    assert outcomes(array)[1] not in {"match", "-"}
