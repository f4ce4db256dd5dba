"""Where a (message, target) pair is in a column of targets: rows about a query are expanded to its targets.

The kernel reports nodes and outputs once for each query. Subscribers are targets, and a query may have many.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.spark.worker.offsets import Numbers, offsets_of


def expand_to_targets(
    targets: Any, rows: pa.RecordBatch, row_targets: Any, first_message: int
) -> tuple[Numbers, Numbers]:
    """For each row and each target of its query: the row, and the position in `targets.flatten()`.

    `targets` has the ascending targets of each message, from message number `first_message` on. `rows` has a
    column `message`, and `row_targets` the targets of each row's query, which the message of the row has too.

        targets      [[10, 20], [20, 30]]        flat: 10, 20, 20, 30
        rows         message 0, message 1
        row_targets  [[20], [20, 30]]            → rows 0, 1, 1 at the positions 1, 2, 3
    """
    offsets = offsets_of(targets)
    row = np.repeat(np.arange(rows.num_rows), np.diff(offsets_of(row_targets)))
    message = rows.column("message").to_numpy().astype(np.int64)[row] - first_message
    # Each pair of message and target becomes one number, message × distinct targets + rank of the target. In
    # `targets` these numbers ascend, so positions are found by binary search.
    distinct, rank = np.unique(targets.flatten().to_numpy(), return_inverse=True)
    message_of_value = np.repeat(np.arange(len(targets)), np.diff(offsets))
    pairs = message_of_value * len(distinct) + rank
    wanted = message * len(distinct) + np.searchsorted(distinct, row_targets.flatten().to_numpy())
    return row, np.searchsorted(pairs, wanted)
