"""List columns by their offsets, as Arrow stores them; computes the size of a result before it is built.

The *offsets* of n lists are n + 1 ascending numbers: list i is the values from `offsets[i]` to before
`offsets[i + 1]` of the flat column. So the lists [7, 8], [], [9] are the values 7, 8, 9 with the offsets
0, 2, 2, 3. Offsets also tell how large rows are: rows i to before j hold `offsets[j] - offsets[i]` values.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.engine import Index

Numbers = npt.NDArray[np.int64]

Offsets = npt.NDArray[np.int64]


def offsets_of(lists: Any) -> Offsets:
    """The offsets of a list column in its `flatten()`; those of a slice start at 0 too."""
    stored = lists.offsets.to_numpy()
    offsets: Offsets = stored - stored[0]
    return offsets


def offsets_from_lengths(lengths: Numbers) -> Offsets:
    """The running total.

    >>> offsets_from_lengths(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def lists_of(offsets: Offsets, values: Any) -> Any:
    """Values as lists, with offsets of 32 bits as Spark requires: a batch is small enough for that."""
    narrow: Any = pa.array(offsets.astype(np.int32))
    return pa.ListArray.from_arrays(narrow, values)


def split_rows(offsets: Offsets, limit: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold at most `limit` values each; a row that alone holds more is a range.

    >>> list(split_rows(np.array([0, 4, 8, 30, 31]), limit=10))
    [(0, 2), (2, 3), (3, 4)]
    """
    rows = len(offsets) - 1
    first = 0
    while first < rows:
        fitting = int(np.searchsorted(offsets, offsets[first] + limit, side="right")) - 1
        end = max(first + 1, fitting)
        yield first, end
        first = end


class FanOut:
    """How many targets each query of a generation has; looked up in the index when a query first matches."""

    def __init__(self, index: Index) -> None:
        self._index = index
        stats = index.stats()
        self.maximum = 1 + stats.targets - stats.queries
        """No query has more targets: every other query has at least one."""
        self._targets = np.full(0, -1, np.int64)
        """By query number; -1 is not known yet."""

    def offsets(self, queries: Any, generation: pa.Schema) -> Offsets:
        """The offsets of the targets of a column of queries; the schema names their generation.

        If query 5 has 3 targets and query 9 has 1, the queries 5, 9, 5 have the offsets 0, 3, 4, 7.
        """
        numbers = queries.to_numpy()
        if len(numbers) == 0:
            return np.zeros(1, np.int64)
        missing = int(numbers.max()) + 1 - len(self._targets)
        if missing > 0:
            self._targets = np.append(self._targets, np.full(missing, -1, np.int64))
        unknown = np.unique(numbers[self._targets[numbers] < 0])
        if len(unknown) > 0:
            asked = pa.record_batch([pa.array(unknown)], ["query"])
            asked = asked.replace_schema_metadata(generation.metadata)
            self._targets[unknown] = np.diff(offsets_of(self._index.targets(asked)))
        return offsets_from_lengths(self._targets[numbers])
