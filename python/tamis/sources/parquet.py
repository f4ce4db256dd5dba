"""Parquet files: one message a row, in a column `xml`; the columns `id` and `headers` are optional.

Headers are a map of strings, or the text of a JSON object.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.model.headers import HeaderError, pack_headers
from tamis.model.message_id import id_error
from tamis.sources.raw_message import RAW_BYTES, RawMessage
from tamis.sources.transcode import mismatch_of_string

_ROWS = 256
"""Rows that are decoded at a time: messages can be large."""


class ParquetRows:
    """The messages of a Parquet file. `position` is where a new reader would continue."""

    def __init__(self, path: Path, position: dict[str, Any] | None = None) -> None:
        self._path = path
        self._number: int = position["number"] if position else 0

    @property
    def position(self) -> dict[str, Any]:
        return {"number": self._number}

    def sizes(self) -> Iterator[int]:
        """The average size of the messages of each row group."""
        try:
            with pq.ParquetFile(self._path) as file:
                groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
                shares = [(group.num_rows, group.total_byte_size) for group in groups]
        except Exception:
            # Damaged metadata raises many types; `messages` gives the reason.
            shares = []
        if not sum(rows for rows, _ in shares):
            # `messages` gives one region that says what is wrong.
            shares = [(1, 0)]
        before = 0
        for rows, size in shares:
            for _ in range(max(0, min(rows, before + rows - self._number))):
                self._number += 1
                yield size // rows
            before += rows

    def messages(self) -> Iterator[RawMessage]:
        try:
            with pq.ParquetFile(self._path) as file:
                columns = file.schema_arrow
                if "xml" not in columns.names or not _is_text(columns.field("xml").type):
                    yield self._error("no-xml", "the table has no column xml of strings or bytes")
                elif file.metadata.num_rows == 0:
                    yield self._error("no-record", "the table has no rows")
                else:
                    yield from self._rows(file)
        except Exception as error:
            # A damaged file raises many types, not only those of Arrow.
            yield self._error("bad-parquet", f"{self._path.name} cannot be read as Parquet: {error}")

    def _rows(self, file: pq.ParquetFile) -> Iterator[RawMessage]:
        metadata = file.metadata
        names = [name for name in ("id", "headers", "xml") if name in file.schema_arrow.names]
        encoding = None if pa.types.is_binary(_plain(file.schema_arrow.field("xml").type)) else "UTF-8"
        before = 0
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            at = before
            if before + rows > self._number:
                for batch in file.iter_batches(_ROWS, row_groups=[group], columns=names):
                    fresh = max(0, self._number - at)
                    at += batch.num_rows
                    yield from self._messages(batch.slice(fresh), encoding)
            before += rows

    def _messages(self, batch: pa.RecordBatch, encoding: str | None) -> Iterator[RawMessage]:
        none: Any = pa.nulls(batch.num_rows)
        ids: Any = batch.column("id") if "id" in batch.schema.names else none
        headers: Any = batch.column("headers") if "headers" in batch.schema.names else none
        for row in zip(ids, headers, batch.column("xml"), strict=True):
            yield self._message(*row, encoding)

    def _message(self, id: Any, headers: Any, xml: Any, encoding: str | None) -> RawMessage:
        # Bytes, not text: a column of strings may hold invalid UTF-8, which the XML reader refuses.
        data = None if not xml.is_valid else xml.as_buffer().to_pybytes()
        if data is None:
            return self._error("no-xml", "xml is null in this row")
        try:
            message_id = str(id.as_py()) if id.is_valid else None
            reason = None if message_id is None else id_error(message_id)
        except (ValueError, OverflowError) as error:
            reason = f"the id cannot be read: {error}"
        if reason:
            return replace(self._error("bad-id", reason), xml=data[:RAW_BYTES])
        try:
            packed = pack_headers(_object(headers))
        except HeaderError as error:
            return replace(self._error(error.code, error.reason), xml=data[:RAW_BYTES])
        if encoding and (reason := mismatch_of_string(data)):
            return replace(self._error("encoding-mismatch", reason), xml=data[:RAW_BYTES])
        self._number += 1
        place = self._number - 1
        return RawMessage(self._number, place, data, id=message_id, encoding=encoding, headers=packed)

    def _error(self, code: str, reason: str) -> RawMessage:
        self._number += 1
        return RawMessage(self._number, self._number - 1, b"", code, reason)


def _object(headers: Any) -> Any:
    """The headers of a row: a map is a list of pairs in Python."""
    try:
        given = headers.as_py()
        return json.loads(given) if isinstance(given, str) else given if given is None else dict(given)
    except (ValueError, TypeError, RecursionError) as error:
        raise HeaderError("bad-header", f"the headers cannot be read: {error}") from error


def _plain(kind: "pa.DataType") -> "pa.DataType":
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _is_text(kind: "pa.DataType") -> bool:
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_string or pa.types.is_binary(_plain(kind))
