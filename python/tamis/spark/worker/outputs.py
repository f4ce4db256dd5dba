"""The outputs of transformations: each once for its message, and for each target a reference to it.

A message with the targets 10, 20 and 30, of which 10 and 20 share a transformation and 30 is a filter, gets

    outputs      [b"<x/>"]
    references   [1, 1, none]

A reference is the position among the outputs of the message, from 1. A filter has none: its output is the
message.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.matching import Transformed
from tamis.spark.worker.offsets import Offsets, lists_of, offsets_from_lengths, offsets_of
from tamis.spark.worker.positions import expand_to_targets

FIELDS = ("output", "code", "reason")


def output_references(targets: Any, made: pa.RecordBatch, made_targets: Any, first_message: int) -> Any:
    """For each message a list, with a reference to an output for each of its targets in turn.

    A failed transformation has `code` and `reason` instead. `made` are the rows of these messages, and
    `made_targets` the targets of each row's query.
    """
    offsets = offsets_of(targets)
    row_of_target = np.full(int(offsets[-1]), -1, np.int64)
    if made.num_rows:
        row, position = expand_to_targets(targets, made, made_targets, first_message)
        row_of_target[position] = row
    rows: Any = pa.array(row_of_target, mask=row_of_target < 0)
    columns = [_number_in_message(made), made.column("code"), made.column("reason")]
    return lists_of(
        offsets, pa.StructArray.from_arrays([column.take(rows) for column in columns], list(FIELDS))
    )


def _number_in_message(made: pa.RecordBatch) -> Any:
    """The number of each row's output among those of its message, from 1.

    The outputs of a message are consecutive in the batch: if those of a message are 17, 18 and 19, then
    output 18 has the number 2.
    """
    messages = made.column("message").to_numpy()
    outputs: Any = made.column("output")
    if outputs.null_count == len(outputs):
        return pa.nulls(len(outputs), pa.int32())
    # A failed transformation has no output. The largest number keeps it from being taken for the first one.
    known = pc.fill_null(outputs, np.iinfo(np.uint32).max).to_numpy().astype(np.int64)
    first_of_message = np.full(int(messages.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_of_message, messages, known)
    numbers = (known - first_of_message[messages] + 1).astype(np.int32)
    return pa.array(numbers, mask=outputs.is_null().to_numpy(zero_copy_only=False))


def outputs_by_message(transformed: Transformed, first: int, end: int) -> Any:
    """For each of some messages, the list of its outputs."""
    made = _succeeded(made_rows(transformed, first, end))
    messages = made.column("message").to_numpy() - first
    # Several queries of a message may share an output.
    pairs = np.unique(np.stack([messages, made.column("output").to_numpy()]), axis=1).astype(np.int64)
    offsets = offsets_from_lengths(np.bincount(pairs[0], minlength=end - first))
    return lists_of(offsets, transformed.outputs.take(pa.array(pairs[1])).cast(pa.binary()))


def made_rows(transformed: Transformed, first: int, end: int) -> pa.RecordBatch:
    """The rows of `made` that are about some messages."""
    return rows_of_messages(transformed.made, first, end)


def rows_of_messages(rows: pa.RecordBatch, first: int, end: int) -> pa.RecordBatch:
    """Of rows that ascend by their column `message`, those of the messages from `first` to before `end`."""
    start, stop = np.searchsorted(rows.column("message").to_numpy(), [first, end])
    return rows.slice(start, stop - start)


def byte_offsets(transformed: Transformed) -> Offsets:
    """The offsets of the messages in the bytes of all outputs, one message after the other."""
    made = _succeeded(transformed.made)
    payloads: Any = transformed.outputs
    lengths = pc.binary_length(payloads).to_numpy()
    # Several rows may share an output.
    outputs, rows = np.unique(made.column("output").to_numpy(), return_index=True)
    messages = made.column("message").to_numpy()[rows]
    bytes_of_message = np.zeros(transformed.matches.num_rows, np.int64)
    np.add.at(bytes_of_message, messages, lengths[outputs])
    return offsets_from_lengths(bytes_of_message)


def _succeeded(made: pa.RecordBatch) -> pa.RecordBatch:
    return made.filter(made.column("output").is_valid())
