"""Messages grouped by tenant: a message is matched against the queries of its tenant only.

The kernel takes one tenant a call. So a batch is grouped, each group is matched, and the results are put back
in the order of the batch. For the tenants b, a, b:

    groups   a: rows 1     b: rows 0, 2
    results  of the rows 1, 0, 2, put back in the order 0, 1, 2
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine import Index
from tamis.model.matching import Limits, Transformed
from tamis.schema import Schema

Rows = npt.NDArray[np.int64]

NO_TENANT = "no-tenant"


@dataclass(frozen=True, slots=True)
class TenantGroup:
    """The messages of a batch that belong to one tenant, and their rows in the batch."""

    tenant: str | None
    messages: Any
    rows: Rows


def group_by_tenant(messages: Any, tenants: Any) -> list[TenantGroup]:
    """A group for each tenant that occurs, and one for the messages without a tenant."""
    encoded = tenants.dictionary_encode(null_encoding="encode")
    names = encoded.dictionary.to_pylist()
    name_of_row = encoded.indices.to_numpy()
    if len(names) == 1:
        return [TenantGroup(names[0], messages, np.arange(len(messages)))]
    by_name = np.argsort(name_of_row, kind="stable")
    bounds = np.searchsorted(name_of_row[by_name], np.arange(len(names) + 1))
    grouped = messages.take(by_name)
    return [
        TenantGroup(name, grouped.slice(start, stop - start), by_name[start:stop])
        for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True)
    ]


def match_groups(index: Index, groups: Sequence[TenantGroup], limits: Limits) -> pa.RecordBatch:
    """As `Index.match_batch`, in the order of the batch."""
    return _in_batch_order(groups, [_match(index, group, limits) for group in groups])


def transform_groups(
    index: Index, groups: Sequence[TenantGroup], limits: Limits, schema: Schema | None
) -> Transformed:
    """As `Index.transform_batch`, in the order of the batch."""
    parts = [_transform(index, group, limits, schema) for group in groups]
    if len(parts) == 1:
        return parts[0]
    outputs: Any = pa.chunked_array([part.outputs for part in parts]).combine_chunks()
    outputs_before = np.cumsum([0, *(len(part.outputs) for part in parts)])
    made = []
    for group, part, before in zip(groups, parts, outputs_before, strict=False):
        rows = _with_batch_rows(part.made, group)
        place = rows.schema.get_field_index("output")
        numbers = pc.add(rows.column(place), pa.scalar(int(before), pa.uint32()))
        made.append(rows.set_column(place, rows.schema.field(place), numbers))
    matches = _in_batch_order(groups, [part.matches for part in parts])
    return Transformed(matches, _sorted_by_message(made), outputs)


def select_groups(index: Index, groups: Sequence[TenantGroup], limits: Limits, limit: int) -> pa.RecordBatch:
    """As the rows of `Index.match_elements`, in the order of the batch."""
    parts = []
    for group in groups:
        if group.tenant is not None:
            found = index.match_elements(group.messages, limit=limit, tenant=group.tenant, limits=limits)
            parts.append(_with_batch_rows(found.rows, group))
    if not parts:
        return index.match_elements([], limit=limit).rows
    return parts[0] if len(parts) == 1 else _sorted_by_message(parts)


def _match(index: Index, group: TenantGroup, limits: Limits) -> pa.RecordBatch:
    if group.tenant is not None:
        return index.match_batch(group.messages, tenant=group.tenant, limits=limits)
    # A message without a tenant must not be matched for the tenant with the empty name.
    refused = index.match_batch(pa.nulls(len(group.messages), pa.large_binary()), limits=limits)
    for name, value in (("code", NO_TENANT), ("reason", "the message has no tenant")):
        place = refused.schema.get_field_index(name)
        refused = refused.set_column(place, refused.schema.field(place), pa.repeat(value, refused.num_rows))
    return refused


def _transform(index: Index, group: TenantGroup, limits: Limits, schema: Schema | None) -> Transformed:
    if group.tenant is not None:
        return index.transform_batch(group.messages, tenant=group.tenant, limits=limits, schema=schema)
    return replace(index.transform_batch([], limits=limits), matches=_match(index, group, limits))


def _in_batch_order(groups: Sequence[TenantGroup], parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Results with one row for each message, of all groups, in the order of the batch."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([group.rows for group in groups])
    return _concatenated(parts).take(np.argsort(rows))


def _with_batch_rows(rows: pa.RecordBatch, group: TenantGroup) -> pa.RecordBatch:
    """Rows whose column `message` counts in the batch instead of in the group."""
    place = rows.schema.get_field_index("message")
    messages = group.rows[rows.column(place).to_numpy()].astype(np.uint32)
    return rows.set_column(place, rows.schema.field(place), pa.array(messages))


def _sorted_by_message(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    rows = _concatenated(parts)
    return rows.take(np.argsort(rows.column("message").to_numpy(), kind="stable"))


def _concatenated(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (whole,) = pa.Table.from_batches(parts).combine_chunks().to_batches() or parts[:1]
    return whole
