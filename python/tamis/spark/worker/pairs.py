"""One task of a Python worker: verifies pairs of a message and a target that joins could not decide."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engine import Index
from tamis.model.matching import Generation, Limits
from tamis.spark.worker.envelopes import messages_in_envelopes
from tamis.spark.worker.generations import opened
from tamis.spark.worker.tenants import group_by_tenant

TENANT, MESSAGE, CONTENT, TARGETS, ENVELOPE = range(5)
"""The columns of the rows; the last one only if envelopes are given."""


@dataclass(frozen=True, slots=True)
class PairsTask:
    """The task that workers run on messages with their targets, pickled for them."""

    generation: Generation
    limits: Limits

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row for each message of a batch: `tenant`, `message` and the `targets` that match."""
        index = opened(self.generation).index
        for batch in batches:
            if batch.num_rows:
                yield from self._run_batch(index, batch)

    def _run_batch(self, index: Index, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        messages: Any = batch.column(CONTENT)
        if batch.num_columns > ENVELOPE and index.asks_envelope:
            messages = messages_in_envelopes(messages, batch.column(ENVELOPE))
        for group in group_by_tenant(messages, batch.column(TENANT)):
            places: Any = pa.array(group.rows)
            own = batch.take(places)
            pairs: Any = own.column(TARGETS).cast(pa.list_(pa.int64()))
            flat: Any = pairs.flatten().view(pa.uint64())
            offsets = np.concatenate([[0], np.cumsum(pairs.value_lengths().to_numpy())])
            lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
            matched = index.match_pairs(group.messages, lists, tenant=group.tenant or "", limits=self.limits)
            targets: Any = index.targets(matched)
            found = pa.LargeListArray.from_arrays(targets.offsets, targets.values.view(pa.int64()))
            names = ["tenant", "message", "targets"]
            columns: list[Any] = [own.column(TENANT), own.column(MESSAGE), found.cast(pa.list_(pa.int64()))]
            yield pa.record_batch(columns, names)
