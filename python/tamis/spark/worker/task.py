"""What a Python worker does: Arrow batches of messages in, Arrow batches of their matches out.

Nothing here loops over messages or matches: the kernel does, once a batch, and what surrounds it works on
whole columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engine import Index, Schema
from tamis.model.matching import Generation, Limits
from tamis.spark.worker.elements import nested
from tamis.spark.worker.generations import opened
from tamis.spark.worker.outputs import made_between, made_for, outputs_of, sizes
from tamis.spark.worker.sizes import Ends, FanOut, list_ends, ranges, short_lists
from tamis.spark.worker.tenants import Share, find_shares, match_shares, shares, transform_shares

MOST = 1 << 20
"""So many targets and nodes an output batch holds, unless one message alone has more: 8 MiB of targets."""

MOST_BYTES = 64 << 20
"""So many bytes of outputs, likewise."""

ERROR = ("code", "reason", "offset", "line", "column", "value", "limit")


@dataclass(frozen=True, slots=True)
class Matching:
    """A step of a job, as it travels to the workers."""

    generation: Generation
    message: int
    """The place of the message among the columns."""
    kept: int
    """So many columns, the first ones, are kept."""
    tenant: str
    tenant_column: int | None
    limits: Limits
    elements: int = 0
    """At most so many nodes for one message and query come along."""
    transforms: bool = False
    """Whether what transformations make of messages comes along."""
    schema: Schema | None = None
    """What messages are expected to conform to."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        return self.run_on(opened(self.generation).index, batches)

    def run_on(self, index: Index, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same with the generation's index in hand."""
        fan_out = FanOut(index)
        for batch in batches:
            if batch.num_rows > 0:
                yield from self._matched(index, fan_out, batch)

    def _matched(self, index: Index, fan_out: FanOut, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """One batch: matched at once, handed over in pieces."""
        given = self._shares(batch)
        transformed = found = None
        if self.transforms:
            transformed = transform_shares(index, given, self.limits, self.schema)
            matches = transformed.matches
        else:
            matches = match_shares(index, given, self.limits)
        if self.elements:
            found = find_shares(index, given, self.limits, self.elements)
        pieces = _pieces(matches, found, fan_out)
        if transformed is not None and transformed.made.num_rows:
            pieces = _no_larger(pieces, sizes(transformed))
        for start, stop in pieces:
            some = matches.slice(start, stop - start)
            targets: Any = index.targets(some)
            columns = [
                *(column.slice(start, stop - start) for column in batch.columns[: self.kept]),
                short_lists(list_ends(targets), targets.flatten().view(pa.int64())),
                some.column("candidates").cast(pa.int64()),
                _errors(some),
            ]
            names = [*batch.schema.names[: self.kept], "targets", "candidates", "error"]
            if found is not None:
                within = _between(found, start, stop)
                columns.append(nested(targets, within, index.targets(within), start))
                names.append("elements")
            if transformed is not None:
                made = made_between(transformed, start, stop)
                columns += [
                    made_for(targets, made, index.targets(made), start),
                    outputs_of(transformed, start, stop),
                ]
                names += ["made", "outputs"]
            yield pa.record_batch(columns, names)

    def _shares(self, batch: pa.RecordBatch) -> list[Share]:
        messages = batch.column(self.message)
        if self.tenant_column is None:
            return [Share(self.tenant, messages, np.arange(len(messages)))]
        return shares(messages, batch.column(self.tenant_column))


def _pieces(
    matches: pa.RecordBatch, found: pa.RecordBatch | None, fan_out: FanOut
) -> Iterator[tuple[int, int]]:
    """The rows of each output batch."""
    queries: Any = matches.column("queries")
    # By queries first: to know how many targets there are takes time and memory for each query.
    before = list_ends(queries)
    for first, last in ranges(before, MOST):
        if found is None and (before[last] - before[first]) * fan_out.most <= MOST:
            yield first, last
            continue
        some = queries.slice(first, last - first)
        ends = fan_out.ends(some.flatten(), matches.schema)[list_ends(some)]
        if found is not None:
            within = _between(found, first, last)
            messages = within.column("message").to_numpy()
            nodes = fan_out.ends(within.column("query"), found.schema)
            ends = ends + nodes[np.searchsorted(messages, np.arange(first, last + 1))]
        for start, stop in ranges(ends, MOST):
            yield first + start, first + stop


def _no_larger(pieces: Iterator[tuple[int, int]], ends: Ends) -> Iterator[tuple[int, int]]:
    """Pieces whose outputs have no more bytes than Arrow's batches should."""
    for first, last in pieces:
        for start, stop in ranges(ends[first : last + 1], MOST_BYTES):
            yield first + start, first + stop


def _between(found: pa.RecordBatch, first: int, last: int) -> pa.RecordBatch:
    """The nodes found in the messages of some rows."""
    start, stop = np.searchsorted(found.column("message").to_numpy(), [first, last])
    return found.slice(start, stop - start)


def _errors(matches: pa.RecordBatch) -> Any:
    columns: list[Any] = [matches.column(name) for name in ERROR]
    signed = [column.view(pa.int64()) if pa.types.is_uint64(column.type) else column for column in columns]
    return pa.StructArray.from_arrays(signed, list(ERROR), mask=columns[0].is_null())
