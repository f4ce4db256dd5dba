"""The nodes that queries select, put beside the targets of these queries."""

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.spark.sizes import list_ends, short_lists

FIELDS = ("node", "kind", "attribute", "span_start", "span_end")


def nested(targets: Any, found: pa.RecordBatch, found_targets: Any, first: int) -> Any:
    """For each message a list, for each of its targets in turn a list of nodes.

    `targets` has a list for each message, `found` a row for each node with its message, counted from `first`,
    and `found_targets` the targets of that row's query.
    """
    ends = list_ends(targets)
    # A node of a query that several targets share stands below each of them.
    copies = np.diff(list_ends(found_targets))
    row = np.repeat(np.arange(found.num_rows), copies)
    message = found.column("message").to_numpy().astype(np.int64)[row] - first

    # A pair of message and target as one number, ascending in `targets`: so places are found by bisection.
    distinct, rank = np.unique(targets.flatten().to_numpy(), return_inverse=True)
    pairs = np.repeat(np.arange(len(targets)), np.diff(ends)) * len(distinct) + rank
    wanted = message * len(distinct) + np.searchsorted(distinct, found_targets.flatten().to_numpy())
    place = np.searchsorted(pairs, wanted)

    inner = np.zeros(len(pairs) + 1, np.int64)
    np.cumsum(np.bincount(place, minlength=len(pairs)), out=inner[1:])
    taken = found.take(row[np.argsort(place, kind="stable")])
    columns: list[Any] = [taken.column(name) for name in FIELDS]
    signed = [column.cast(pa.int32()) if pa.types.is_integer(column.type) else column for column in columns]
    nodes = pa.StructArray.from_arrays(signed, list(FIELDS))
    return short_lists(ends, short_lists(inner, nodes))
