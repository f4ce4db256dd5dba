"""One task of a Python worker: value tables of messages, in batches of bounded size."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine import read_values
from tamis.model.matching import Limits
from tamis.spark.worker.errors import error_structs
from tamis.spark.worker.offsets import offsets_from_lengths, split_rows

MAX_BYTES = 4 << 20
"""Bytes of messages that are read at once: their rows take many times as much."""


@dataclass(frozen=True, slots=True)
class ValuesTask:
    """The task that workers run on messages, pickled for them."""

    message: int
    """The number of the column with the messages."""
    kept: int
    """How many columns, the first ones, are copied to the result."""
    limits: Limits

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The value tables of the batches of one task; a row without a node for each refused message."""
        for batch in batches:
            if batch.num_rows == 0:
                continue
            messages: Any = batch.column(self.message)
            lengths: Any = pc.fill_null(pc.binary_length(messages), 0)
            offsets = offsets_from_lengths(lengths.to_numpy().astype(np.int64))
            for first, end in split_rows(offsets, MAX_BYTES):
                yield from self._run_piece(batch.slice(first, end - first))

    def _run_piece(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        values = read_values(batch.column(self.message), self.limits)
        # Without the messages: a copy of one for each of its rows would not fit into a column.
        given = batch.columns[: self.kept]
        for rows in values.rows.to_batches():
            kept = [column.take(rows.column("message")) for column in given]
            columns: list[Any] = [*kept, *rows.columns[1:]]
            columns.append(pa.nulls(rows.num_rows, error_structs(values.errors.slice(0, 0)).type))
            yield pa.record_batch(columns, self._names(batch, rows))
        refused = values.errors
        if refused.num_rows:
            kept = [column.take(refused.column("message")) for column in given]
            empty = values.rows.schema
            nulls: list[Any] = [pa.nulls(refused.num_rows, field.type) for field in list(empty)[1:]]
            columns = [*kept, *nulls, error_structs(refused)]
            yield pa.record_batch(columns, self._names(batch, values.rows))

    def _names(self, batch: pa.RecordBatch, rows: pa.RecordBatch | pa.Table) -> list[str]:
        return [*batch.schema.names[: self.kept], *rows.schema.names[1:], "error"]
