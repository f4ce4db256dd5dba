"""How large a result will be, before it is made: so that it is made in pieces."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.engine import Index

Ends = npt.NDArray[np.int64]
"""For n rows n + 1 ascending numbers: what lies before the first, then up to the end of each."""


def ranges(ends: Ends, most: int) -> Iterator[tuple[int, int]]:
    """Rows in groups that hold `most` at most, or a single row that alone holds more."""
    rows = len(ends) - 1
    start = 0
    while start < rows:
        fitting = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        stop = max(start + 1, fitting)
        yield start, stop
        start = stop


def list_ends(lists: Any) -> Ends:
    """Where the lists of a column end in its `flatten()`."""
    offsets: Ends = lists.offsets.to_numpy()
    ends: Ends = offsets - offsets[0]
    return ends


def short_lists(ends: Ends, values: Any) -> Any:
    """Values as lists with ends of 32 bits, as Spark wants them: a piece is small enough."""
    offsets: Any = pa.array(ends.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values)


class FanOut:
    """How many targets each query of a generation leads to, learnt when a query first matches."""

    def __init__(self, index: Index) -> None:
        self._index = index
        stats = index.stats()
        self.most = 1 + stats.targets - stats.queries
        """No query leads to more: each leads to one at least."""
        # By number of the query; -1 is not known yet.
        self._targets = np.full(0, -1, np.int64)

    def ends(self, queries: Any, generation: pa.Schema) -> Ends:
        """For queries one after the other, up to how many targets they lead; `generation` is their schema."""
        numbers = queries.to_numpy()
        if len(numbers) == 0:
            return np.zeros(1, np.int64)
        lacking = int(numbers.max()) + 1 - len(self._targets)
        if lacking > 0:
            self._targets = np.append(self._targets, np.full(lacking, -1, np.int64))
        unknown = np.unique(numbers[self._targets[numbers] < 0])
        if len(unknown) > 0:
            asked = pa.record_batch([pa.array(unknown)], ["query"])
            asked = asked.replace_schema_metadata(generation.metadata)
            self._targets[unknown] = np.diff(list_ends(self._index.targets(asked)))
        ends = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(self._targets[numbers], out=ends[1:])
        return ends
