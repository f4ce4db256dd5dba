"""CSV files: the first line names the columns. An empty field is an empty child."""

import csv
from collections.abc import Iterator
from pathlib import Path

from tamis.data.rows import check_columns, rows_as_xml
from tamis.errors import DataError


def csv_records(path: Path) -> Iterator[bytes]:
    """A record per line of UTF-8 text."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            columns = next(lines, None)
            if columns is None:
                raise DataError("no-column", f"{path} has no line that names the columns")
            check_columns(columns, str(path))
            yield from rows_as_xml(_rows(lines, columns, path), str(path))
        except csv.Error as error:
            raise DataError("bad-csv", f"{path}: line {lines.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise DataError("bad-csv", f"{path}: after line {lines.line_num}: not UTF-8") from error


def _rows(lines: "Iterator[list[str]]", columns: list[str], path: Path) -> Iterator[dict[str, str]]:
    for number, fields in enumerate(lines, start=1):
        if not fields:
            # A blank line.
            continue
        if len(fields) != len(columns):
            reason = f"row {number} has {len(fields)} fields, and there are {len(columns)} columns"
            raise DataError("bad-csv", f"{path}: {reason}")
        yield dict(zip(columns, fields, strict=True))
