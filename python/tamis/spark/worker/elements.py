"""The nodes that queries select, put beside the targets of these queries."""

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.spark.worker.pairs import places_of
from tamis.spark.worker.sizes import list_ends, short_lists

FIELDS = ("node", "kind", "attribute", "span_start", "span_end")


def nested(targets: Any, found: pa.RecordBatch, found_targets: Any, first: int) -> Any:
    """For each message a list, for each of its targets in turn a list of nodes.

    `targets` has a list for each message, `found` a row for each node with its message, counted from `first`,
    and `found_targets` the targets of that row's query.
    """
    ends = list_ends(targets)
    row, place = places_of(targets, found, found_targets, first)
    inner = np.zeros(int(ends[-1]) + 1, np.int64)
    np.cumsum(np.bincount(place, minlength=int(ends[-1])), out=inner[1:])
    taken = found.take(row[np.argsort(place, kind="stable")])
    columns: list[Any] = [taken.column(name) for name in FIELDS]
    signed = [column.cast(pa.int32()) if pa.types.is_integer(column.type) else column for column in columns]
    nodes = pa.StructArray.from_arrays(signed, list(FIELDS))
    return short_lists(ends, short_lists(inner, nodes))
