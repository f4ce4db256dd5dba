"""What transformations make of messages, put beside the targets they make it for."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.matching import Transformed
from tamis.spark.worker.pairs import places_of
from tamis.spark.worker.sizes import Ends, list_ends, short_lists

FIELDS = ("output", "code", "reason")


def made_for(targets: Any, made: pa.RecordBatch, made_targets: Any, first: int) -> Any:
    """For each message a list, for each of its targets in turn what is made for it.

    That is the place of its `output` among those of the message, from 1, or the `code` and `reason` of a
    transformation that failed; nothing of this for a filter, which leaves the message as it is. `made` are
    the rows of these messages, counted from `first`, and `made_targets` the targets of each row's query.
    """
    ends = list_ends(targets)
    of = np.full(int(ends[-1]), -1, np.int64)
    if made.num_rows:
        row, place = places_of(targets, made, made_targets, first)
        of[place] = row
    rows: Any = pa.array(of, mask=of < 0)
    columns = [column.take(rows) for column in (_place(made), made.column("code"), made.column("reason"))]
    return short_lists(ends, pa.StructArray.from_arrays(columns, list(FIELDS)))


def _place(made: pa.RecordBatch) -> Any:
    """The place of each row's output among those of its message: a message's stand together."""
    messages = made.column("message").to_numpy()
    outputs: Any = made.column("output")
    if outputs.null_count == len(outputs):
        return pa.nulls(len(outputs), pa.int32())
    # A transformation that failed has none, and must not be taken for the first.
    known = pc.fill_null(outputs, np.iinfo(np.uint32).max).to_numpy().astype(np.int64)
    first = np.full(int(messages.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, messages, known)
    places = (known - first[messages] + 1).astype(np.int32)
    return pa.array(places, mask=outputs.is_null().to_numpy(zero_copy_only=False))


def outputs_of(transformed: Transformed, start: int, stop: int) -> Any:
    """For each of some messages the list of its outputs."""
    made = transformed.made
    messages = made.column("message").to_numpy()
    some = _succeeded(made.slice(*_stretch(messages, start, stop)))
    pairs = np.unique(
        np.stack([some.column("message").to_numpy() - start, some.column("output").to_numpy()]), axis=1
    ).astype(np.int64)
    ends: Ends = np.zeros(stop - start + 1, np.int64)
    np.cumsum(np.bincount(pairs[0], minlength=stop - start), out=ends[1:])
    return short_lists(ends, transformed.outputs.take(pa.array(pairs[1])).cast(pa.binary()))


def made_between(transformed: Transformed, start: int, stop: int) -> pa.RecordBatch:
    """The rows of some messages."""
    return transformed.made.slice(*_stretch(transformed.made.column("message").to_numpy(), start, stop))


def sizes(transformed: Transformed) -> Ends:
    """Up to how many bytes the outputs of the messages have, one message after the other."""
    made = _succeeded(transformed.made)
    outputs_given: Any = transformed.outputs
    lengths = pc.binary_length(outputs_given).to_numpy()
    # Several rows may have one output.
    outputs, rows = np.unique(made.column("output").to_numpy(), return_index=True)
    messages = made.column("message").to_numpy()[rows]
    ends: Ends = np.zeros(transformed.matches.num_rows + 1, np.int64)
    bytes_of = np.zeros(len(ends) - 1, np.int64)
    np.add.at(bytes_of, messages, lengths[outputs])
    np.cumsum(bytes_of, out=ends[1:])
    return ends


def _succeeded(made: pa.RecordBatch) -> pa.RecordBatch:
    return made.filter(made.column("output").is_valid())


def _stretch(messages: Any, start: int, stop: int) -> tuple[int, int]:
    first, last = np.searchsorted(messages, [start, stop])
    return int(first), int(last - first)
