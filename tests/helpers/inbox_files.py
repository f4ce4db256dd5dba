"""Files for inboxes: each is written beside it and enters by rename, as publishers do."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def drop(inbox: Path, name: str, content: bytes) -> None:
    """Put a file into an inbox; one whose name ends in `.gz` is compressed."""
    inbox.mkdir(parents=True, exist_ok=True)
    entering = inbox / f".{name}.tmp"
    entering.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    entering.rename(inbox / name)


def drop_lines(inbox: Path, name: str, messages: dict[str, str]) -> None:
    lines = (json.dumps({"id": given, "xml": xml}) for given, xml in messages.items())
    drop(inbox, name, "\n".join(lines).encode())


def drop_table(inbox: Path, name: str, columns: dict[str, Any], rows_per_group: int = 100) -> None:
    inbox.mkdir(parents=True, exist_ok=True)
    entering = inbox / f".{name}.tmp"
    pq.write_table(pa.table(columns), entering, row_group_size=rows_per_group)
    entering.rename(inbox / name)


def records(numbers: range) -> bytes:
    """A file of records `<rec>n</rec>`."""
    return b"<all>" + b"".join(b"<rec>%d</rec>\n" % number for number in numbers) + b"</all>"
