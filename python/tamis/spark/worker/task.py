"""One task of a Python worker: matches or transforms batches; results are batches of bounded size.

A batch of 10,000 messages may match millions of targets. The kernel gives the matching queries of all
messages at once. Before they are expanded to targets, the numbers of targets, nodes and bytes are added up,
and each output batch gets as many messages as fit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine import Index
from tamis.model.matching import Generation, Limits
from tamis.schema import Schema
from tamis.spark.worker.elements import nodes_by_target
from tamis.spark.worker.envelopes import messages_in_envelopes
from tamis.spark.worker.errors import error_structs
from tamis.spark.worker.generations import opened
from tamis.spark.worker.offsets import FanOut, Offsets, lists_of, offsets_of, split_rows
from tamis.spark.worker.outputs import (
    byte_offsets,
    made_rows,
    output_references,
    outputs_by_message,
    rows_of_messages,
)
from tamis.spark.worker.tenants import (
    TenantGroup,
    group_by_tenant,
    match_groups,
    select_groups,
    transform_groups,
)

MAX_VALUES = 1 << 20
"""Targets and nodes of an output batch, unless one message alone has more: 8 MiB of targets."""

MAX_BYTES = 64 << 20
"""Bytes of the outputs of an output batch, unless one message alone has more."""

WORK = ("settled", "verified", "steps", "looked_up", "uncached")
"""The work of a message beside its candidates: columns of `Index.match_batch`."""


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The task that workers run on messages, pickled for them."""

    generation: Generation
    message: int
    """The number of the column with the messages."""
    kept: int
    """How many columns, the first ones, are copied to the result."""
    tenant: str
    tenant_column: int | None
    """The number of the column with the tenants; None if all messages belong to `tenant`."""
    limits: Limits
    envelope: int | None = None
    """The number of the column with the envelopes; None if they are not given, or in the message column."""
    elements: int = 0
    """The most selected nodes for each message and query; 0 for none."""
    transforms: bool = False
    """Whether to transform messages too."""
    schema: Schema | None = None
    """The DTD that messages are expected to conform to."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the batches of one task."""
        return self.run_on(opened(self.generation).index, batches)

    def run_on(self, index: Index, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the batches of one task against an open index."""
        fan_out = FanOut(index)
        for batch in batches:
            if batch.num_rows > 0:
                yield from self._run_batch(index, fan_out, batch)

    def _run_batch(self, index: Index, fan_out: FanOut, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Match one batch at once; the result in pieces."""
        groups = self._groups(index, batch)
        transformed = nodes = None
        if self.transforms:
            transformed = transform_groups(index, groups, self.limits, self.schema)
            matches = transformed.matches
        else:
            matches = match_groups(index, groups, self.limits)
        cache_bytes = index.stats().caches.total
        if self.elements:
            nodes = select_groups(index, groups, self.limits, self.elements)
        pieces = _split_by_values(matches, nodes, fan_out)
        if transformed is not None and transformed.made.num_rows:
            pieces = _split_by_bytes(pieces, byte_offsets(transformed))
        for first, end in pieces:
            piece = matches.slice(first, end - first)
            targets: Any = index.targets(piece)
            columns = [
                *(column.slice(first, end - first) for column in batch.columns[: self.kept]),
                lists_of(offsets_of(targets), targets.flatten().view(pa.int64())),
                piece.column("candidates").cast(pa.int64()),
                _work(piece, cache_bytes),
                pc.list_value_length(piece.column("failed")),
                piece.column("skipped_entities").cast(pa.int64()),
                error_structs(piece),
            ]
            results = ["targets", "candidates", "work", "failed", "skipped_entities", "error"]
            names = [*batch.schema.names[: self.kept], *results]
            if nodes is not None:
                some = rows_of_messages(nodes, first, end)
                columns.append(nodes_by_target(targets, some, index.targets(some), first))
                names.append("elements")
            if transformed is not None:
                made = made_rows(transformed, first, end)
                columns += [
                    output_references(targets, made, index.targets(made), first),
                    outputs_by_message(transformed, first, end),
                ]
                names += ["made", "outputs"]
            yield pa.record_batch(columns, names)

    def _groups(self, index: Index, batch: pa.RecordBatch) -> list[TenantGroup]:
        messages: Any = batch.column(self.message)
        if self.envelope is not None and index.asks_envelope:
            messages = messages_in_envelopes(messages, batch.column(self.envelope))
        if self.tenant_column is None:
            return [TenantGroup(self.tenant, messages, np.arange(len(messages)))]
        return group_by_tenant(messages, batch.column(self.tenant_column))


def _split_by_values(
    matches: pa.RecordBatch, nodes: pa.RecordBatch | None, fan_out: FanOut
) -> Iterator[tuple[int, int]]:
    """The range of messages of each output batch, by the number of targets and nodes."""
    queries: Any = matches.column("queries")
    query_offsets = offsets_of(queries)
    # By queries first: to know the number of targets takes time and memory for each query.
    for first, end in split_rows(query_offsets, MAX_VALUES):
        most_targets = (query_offsets[end] - query_offsets[first]) * fan_out.maximum
        if nodes is None and most_targets <= MAX_VALUES:
            yield first, end
            continue
        some = queries.slice(first, end - first)
        value_offsets = fan_out.offsets(some.flatten(), matches.schema)[offsets_of(some)]
        if nodes is not None:
            some_nodes = rows_of_messages(nodes, first, end)
            node_offsets = fan_out.offsets(some_nodes.column("query"), nodes.schema)
            messages = some_nodes.column("message").to_numpy()
            value_offsets = value_offsets + node_offsets[np.searchsorted(messages, np.arange(first, end + 1))]
        for start, stop in split_rows(value_offsets, MAX_VALUES):
            yield first + start, first + stop


def _split_by_bytes(pieces: Iterator[tuple[int, int]], offsets: Offsets) -> Iterator[tuple[int, int]]:
    """The same ranges, split further by the bytes of their outputs."""
    for first, end in pieces:
        for start, stop in split_rows(offsets[first : end + 1], MAX_BYTES):
            yield first + start, first + stop


def _work(matches: pa.RecordBatch, cache_bytes: int) -> Any:
    columns: list[Any] = [matches.column(name).view(pa.int64()) for name in WORK]
    caches: Any = pa.repeat(pa.scalar(cache_bytes, pa.int64()), matches.num_rows)
    return pa.StructArray.from_arrays([*columns, caches], [*WORK, "cache_bytes"])
