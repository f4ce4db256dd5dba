"""Which messages of a task go into the sample of the job: for each tenant, those with the smallest ranks.

A bound falls as soon as enough messages are below it, so a task returns about k · (1 + ln(n / k)) of n
messages, and almost none once the sample of the job is full.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.sample import MESSAGE_BYTES, MESSAGES, Sampling

_NONE = np.array([], np.int64)


class Sampler:
    """Samples the batches of one task."""

    def __init__(self, sampling: Sampling) -> None:
        self._bound = sampling.bound
        self._bounds = dict(sampling.bounds or {})
        self._smallest: dict[str, npt.NDArray[np.int64]] = {}
        """The smallest ranks so far, by tenant."""

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the rank of each message that is sampled, and null for the others."""
        ranks: npt.NDArray[np.int64] = batch.column("rank").to_numpy()
        xml: Any = batch.column("xml")
        is_short: Any = pc.less_equal(pc.binary_length(xml), pa.scalar(MESSAGE_BYTES))
        can_be = pc.and_(batch.column("code").is_null(), pc.fill_null(is_short, False))
        tenants: Any = batch.column("tenant").dictionary_encode()
        names = tenants.dictionary.to_pylist()
        groups: npt.NDArray[np.int32] = tenants.indices.to_numpy()
        bounds = np.array([self._bounds.get(name, self._bound) for name in names], np.int64)
        sampled = can_be.to_numpy(zero_copy_only=False) & (ranks < bounds[groups])
        for group in np.unique(groups[sampled]):
            name, rows = names[group], sampled & (groups == group)
            smallest = np.sort(np.append(self._smallest.get(name, _NONE), ranks[rows]))[:MESSAGES]
            self._smallest[name] = smallest
            if len(smallest) == MESSAGES:
                self._bounds[name] = int(smallest[-1])
                sampled[rows & (ranks > smallest[-1])] = False
        place = batch.schema.get_field_index("rank")
        return batch.set_column(place, "rank", pa.array(ranks, mask=~sampled))
