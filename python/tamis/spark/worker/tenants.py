"""Messages by tenant: each is matched against its tenant's queries and no others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine import Index, Schema
from tamis.model.matching import Limits, Transformed

Rows = npt.NDArray[np.int64]

NO_TENANT = "no-tenant"


@dataclass(frozen=True, slots=True)
class Share:
    """The messages of a batch that belong to one tenant, and the rows they stand in."""

    tenant: str | None
    messages: Any
    rows: Rows


def shares(messages: Any, tenants: Any) -> list[Share]:
    """One share for each tenant that occurs, and one for the messages that have none."""
    encoded = tenants.dictionary_encode(null_encoding="encode")
    names = encoded.dictionary.to_pylist()
    numbers = encoded.indices.to_numpy()
    if len(names) == 1:
        return [Share(names[0], messages, np.arange(len(messages)))]
    rows = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[rows], np.arange(len(names) + 1))
    sorted_messages = messages.take(rows)
    return [
        Share(name, sorted_messages.slice(start, stop - start), rows[start:stop])
        for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True)
    ]


def transform_shares(
    index: Index, given: Sequence[Share], limits: Limits, schema: Schema | None
) -> Transformed:
    """As `Index.transform_batch`, for the rows that the shares stand in."""
    parts = [_transform_share(index, share, limits, schema) for share in given]
    if len(parts) == 1:
        return parts[0]
    outputs: Any = pa.chunked_array([part.outputs for part in parts]).combine_chunks()
    before = np.cumsum([0, *(len(part.outputs) for part in parts)])
    moved = []
    for share, part, first in zip(given, parts, before, strict=False):
        rows = pa.array(share.rows[part.made.column("message").to_numpy()].astype(np.uint32))
        made = part.made.set_column(0, part.made.schema.field(0), rows)
        places = pc.add(made.column("output"), pa.scalar(int(first), pa.uint32()))
        moved.append(made.set_column(2, made.schema.field(2), places))
    together = _together(moved)
    order = np.argsort(together.column("message").to_numpy(), kind="stable")
    return Transformed(_in_rows(given, [part.matches for part in parts]), together.take(order), outputs)


def _transform_share(index: Index, share: Share, limits: Limits, schema: Schema | None) -> Transformed:
    if share.tenant is not None:
        return index.transform_batch(share.messages, tenant=share.tenant, limits=limits, schema=schema)
    none = index.transform_batch([], limits=limits)
    return replace(none, matches=_match_share(index, share, limits))


def match_shares(index: Index, given: Sequence[Share], limits: Limits) -> pa.RecordBatch:
    """As `Index.match_batch`, a row for each row that the shares stand in."""
    return _in_rows(given, [_match_share(index, share, limits) for share in given])


def _in_rows(given: Sequence[Share], parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """What was made of shares, in the order of the rows that they stand in."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([share.rows for share in given])
    return _together(parts).take(np.argsort(rows))


def _together(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (together,) = pa.Table.from_batches(parts).combine_chunks().to_batches() or parts[:1]
    return together


def _match_share(index: Index, share: Share, limits: Limits) -> pa.RecordBatch:
    if share.tenant is not None:
        return index.match_batch(share.messages, tenant=share.tenant, limits=limits)
    # Nobody's message must not become the tenant's whose name is empty.
    refused = index.match_batch(pa.nulls(len(share.messages), pa.large_binary()), limits=limits)
    for name, value in (("code", NO_TENANT), ("reason", "the message has no tenant")):
        place = refused.schema.get_field_index(name)
        refused = refused.set_column(place, refused.schema.field(place), pa.repeat(value, refused.num_rows))
    return refused


def find_shares(index: Index, given: Sequence[Share], limits: Limits, limit: int) -> pa.RecordBatch:
    """As the rows of `Index.match_elements`, in the order of the rows that the shares stand in."""
    parts = []
    for share in given:
        if share.tenant is not None:
            found = index.match_elements(share.messages, limit=limit, tenant=share.tenant, limits=limits).rows
            messages = share.rows[found.column("message").to_numpy()].astype(np.uint32)
            parts.append(found.set_column(0, found.schema.field(0), pa.array(messages)))
    if not parts:
        return index.match_elements([], limit=limit).rows
    if len(parts) == 1:
        return parts[0]
    together = _together(parts)
    order = np.argsort(together.column("message").to_numpy(), kind="stable")
    return together.take(order)
