"""Recipients of messages, split into subscriptions and links: a route is a recipient that is a link."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.route import ROUTE_REVISION
from tamis.spark.worker.offsets import Offsets, lists_of, offsets_from_lengths, offsets_of


def split_routes(batch: pa.RecordBatch, recipients: str) -> tuple[pa.RecordBatch, Any]:
    """The batch without routes among its recipients, and for each message the links that they lead to.

    A route whose query failed counts: nobody knows that the message is not wanted.
    """
    lists: Any = batch.column(recipients)
    offsets, rows = offsets_of(lists), lists.flatten()
    is_route = pc.struct_field(rows, "revision").to_numpy(zero_copy_only=False) == ROUTE_REVISION
    names = pc.struct_field(rows, "subscription").filter(pa.array(is_route))
    links = lists_of(_offsets_among(is_route, offsets), names)
    if not len(names):
        return batch, links
    kept = lists_of(_offsets_among(~is_route, offsets), rows.filter(pa.array(~is_route)))
    return batch.set_column(batch.schema.get_field_index(recipients), recipients, kept), links


def _offsets_among(chosen: Any, offsets: Offsets) -> Offsets:
    """The offsets of lists of which only chosen rows are left."""
    return offsets_from_lengths(chosen.astype(np.int64))[offsets]
