"""Rows about a message and a query, put where the message's targets stand."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.spark.worker.sizes import list_ends

Places = npt.NDArray[np.int64]


def places_of(targets: Any, rows: pa.RecordBatch, row_targets: Any, first: int) -> tuple[Places, Places]:
    """For each row and each target of its query: the row, and the place of the target in `targets.flatten()`.

    `targets` has a list for each message, `rows` name their message, counted from `first`, and `row_targets`
    has the targets of each row's query: a row of a query that several targets share stands for each of them.
    """
    ends = list_ends(targets)
    row = np.repeat(np.arange(rows.num_rows), np.diff(list_ends(row_targets)))
    message = rows.column("message").to_numpy().astype(np.int64)[row] - first

    # A pair of message and target as one number, ascending in `targets`: so places are found by bisection.
    distinct, rank = np.unique(targets.flatten().to_numpy(), return_inverse=True)
    pairs = np.repeat(np.arange(len(targets)), np.diff(ends)) * len(distinct) + rank
    wanted = message * len(distinct) + np.searchsorted(distinct, row_targets.flatten().to_numpy())
    return row, np.searchsorted(pairs, wanted)
