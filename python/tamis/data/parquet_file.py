"""Parquet files."""

from collections.abc import Iterator
from pathlib import Path

from tamis.data.rows import check_columns, rows_as_xml
from tamis.errors import DataError

_ROWS = 4096
"""Rows that are decoded at a time."""


def parquet_records(path: Path) -> Iterator[bytes]:
    """A record per row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            check_columns(file.schema_arrow.names, str(path))
            rows = (row for batch in file.iter_batches(_ROWS) for row in batch.to_pylist())
            yield from rows_as_xml(rows, str(path))
    except (pa.ArrowException, ValueError) as error:
        raise DataError("bad-parquet", f"{path} cannot be read as Parquet: {error}") from error
