"""Which messages of a task go into the sample of the job: for each tenant, those with the smallest ranks.

A bound falls as soon as enough messages are below it, so a task returns about k · (1 + ln(n / k)) of n messages,
and almost none once the sample of the job is full.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.pipeline.sample import MESSAGE_BYTES, MESSAGES, Sampling


class Sampler:
    """Samples the batches of one task."""

    def __init__(self, sampling: Sampling) -> None:
        self._bound = sampling.bound
        self._bounds = dict(sampling.bounds)

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the rank of each message that is sampled, and null for the others."""
        ranks: npt.NDArray[np.int64] = batch.column("rank").to_numpy()
        length = pc.fill_null(pc.binary_length(batch.column("xml")), MESSAGE_BYTES + 1)
        can_be = pc.and_(batch.column("code").is_null(), pc.less_equal(length, MESSAGE_BYTES))
        tenants: Any = batch.column("tenant").dictionary_encode()
        names = tenants.dictionary.to_pylist()
        groups: npt.NDArray[np.int32] = tenants.indices.to_numpy()
        bounds = np.array([self._bounds.get(name, self._bound) for name in names], np.int64)
        sampled = can_be.to_numpy(zero_copy_only=False) & (ranks < bounds[groups])
        for group in np.unique(groups[sampled]):
            rows = np.flatnonzero(sampled & (groups == group))
            if len(rows) >= MESSAGES:
                rows = rows[np.argsort(ranks[rows])]
                sampled[rows[MESSAGES:]] = False
                self._bounds[names[group]] = int(ranks[rows[MESSAGES - 1]])
        place = batch.schema.get_field_index("rank")
        return batch.set_column(place, "rank", pa.array(ranks, mask=~sampled))
