"""Cuts → envelopes: rows that travel, in Arrow batches of bounded size."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tamis.model.envelope import ENVELOPE, VERSION
from tamis.sources.directory import DirectorySource, Piece, read_piece
from tamis.sources.file_formats import can_hold_many
from tamis.sources.raw_message import Cut

BATCH_BYTES = 8 << 20
BATCH_ROWS = 10_000


def envelopes(source: DirectorySource, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
    """The messages of pieces of files, and the regions that are none, in their envelopes."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for piece in pieces:
        for cut in read_piece(source, piece):
            rows.append(_row(source, piece, cut))
            size += len(cut.xml)
            if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
                yield _batch(rows)
                rows, size = [], 0
    if rows:
        yield _batch(rows)


def _row(source: DirectorySource, piece: Piece, cut: Cut) -> tuple[Any, ...]:
    entry = piece.entry
    place = f"#{cut.number}" if can_hold_many(entry.stamp.name, source.record) else ""
    made = f"{entry.id}{place}"
    where = f"{made} at {cut.offset}" if place else made
    return (
        VERSION, source.tenant, source.name, cut.id or made, where, None, 0, cut.encoding, source.schema,
        entry.received, cut.xml, cut.code, cut.reason,
    )  # fmt: skip


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ENVELOPE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENVELOPE)
