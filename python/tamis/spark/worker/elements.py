"""The nodes that queries select, as a list for each target of these queries."""

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.spark.worker.offsets import lists_of, offsets_from_lengths, offsets_of
from tamis.spark.worker.positions import expand_to_targets

FIELDS = ("node", "kind", "attribute", "span_start", "span_end")


def nodes_by_target(targets: Any, nodes: pa.RecordBatch, node_targets: Any, first_message: int) -> Any:
    """For each message a list, with a list of nodes for each of its targets in turn.

    `nodes` has a row for each node, with its message; `node_targets` the targets of that row's query. If the
    query of targets 10 and 20 selects the nodes 3 and 4, a message with the targets 10, 15, 20 gets
    [[3, 4], [], [3, 4]].
    """
    offsets = offsets_of(targets)
    row, position = expand_to_targets(targets, nodes, node_targets, first_message)
    node_offsets = offsets_from_lengths(np.bincount(position, minlength=int(offsets[-1])))
    in_order = nodes.take(row[np.argsort(position, kind="stable")])
    columns: list[Any] = [in_order.column(name) for name in FIELDS]
    signed = [column.cast(pa.int32()) if pa.types.is_integer(column.type) else column for column in columns]
    structs = pa.StructArray.from_arrays(signed, list(FIELDS))
    return lists_of(offsets, lists_of(node_offsets, structs))
