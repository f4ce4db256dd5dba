"""Why messages were refused, as a column of structs."""

from typing import Any

import pyarrow as pa

from tamis.engine import ERROR_COLUMNS


def error_structs(rows: pa.RecordBatch) -> Any:
    """The error columns of a result of the kernel as structs; null for a message that was not refused."""
    columns: list[Any] = [rows.column(name) for name in ERROR_COLUMNS]
    signed = [column.view(pa.int64()) if pa.types.is_uint64(column.type) else column for column in columns]
    return pa.StructArray.from_arrays(signed, list(ERROR_COLUMNS), mask=columns[0].is_null())
