"""Messages of files → envelopes, as Arrow batches of bounded size."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.model.envelope import ENVELOPE, VERSION
from tamis.model.headers import HeaderError, merge_headers
from tamis.sources.directory import DirectorySource, FileSlice, headers_of_file, read_slice
from tamis.sources.file_formats import can_hold_many
from tamis.sources.raw_message import RAW_BYTES, RawMessage

BATCH_BYTES = 8 << 20
BATCH_ROWS = 10_000


def read_envelopes(source: DirectorySource, slices: Iterable[FileSlice]) -> Iterator[pa.RecordBatch]:
    """One envelope for each message of some slices of files, and for each region that is no message."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for slice_ in slices:
        for message in _with_headers_of_file(source, slice_):
            rows.append(_row(source, slice_, message))
            size += len(message.xml)
            if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
                yield _batch(rows)
                rows, size = [], 0
    if rows:
        yield _batch(rows)


def _with_headers_of_file(source: DirectorySource, slice_: FileSlice) -> Iterator[RawMessage]:
    """The messages of a slice, with the headers of their file; each is refused if these are bad."""
    outer: dict[str, str] = {}
    problem: HeaderError | None = None
    try:
        outer = headers_of_file(source, slice_.entry)
    except HeaderError as error:
        problem = error
    for message in read_slice(source, slice_):
        if message.code is not None or (problem is None and not outer):
            yield message
        elif problem is not None:
            yield _refused(message, problem)
        else:
            try:
                yield replace(message, headers=merge_headers(outer, message.headers))
            except HeaderError as error:
                yield _refused(message, error)


def _refused(message: RawMessage, error: HeaderError) -> RawMessage:
    return replace(message, xml=message.xml[:RAW_BYTES], code=error.code, reason=error.reason, headers=None)


def _row(source: DirectorySource, slice_: FileSlice, message: RawMessage) -> tuple[Any, ...]:
    entry = slice_.entry
    suffix = f"#{message.number}" if can_hold_many(entry.identity.name, source.record) else ""
    default_id = f"{entry.id}{suffix}"
    offset = f"{default_id} at {message.offset}" if suffix else default_id
    return (
        VERSION, source.tenant, source.name, message.id or default_id, offset, None, 0, None, None,
        message.encoding, source.schema, entry.received, None, message.headers, message.xml,
        message.code, _as_utf8(message.reason),
    )  # fmt: skip


def _as_utf8(reason: str | None) -> str | None:
    """A reason may quote a file name that is not UTF-8."""
    return None if reason is None else reason.encode("utf-8", "backslashreplace").decode()


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ENVELOPE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENVELOPE)
