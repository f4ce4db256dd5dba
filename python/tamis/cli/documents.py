"""Documents named on the command line: files, gzipped files, standard input."""

import json
import sys
from pathlib import Path
from typing import Any

from tamis.errors import PositionedError, TamisError

STANDARD_INPUT = "-"


class DocumentError(TamisError):
    """A document that cannot be read from its file."""


def read_document(name: str, limit: int) -> bytes:
    """The bytes of a document; of a compressed one and of standard input at most one more than `limit`.

    So a small file cannot fill the memory. The reader of the engine refuses what is longer than the limit.
    """
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(limit + 1)
        if name.endswith(".gz"):
            return _decompressed(name, limit)
        return Path(name).read_bytes()
    except OSError as error:
        raise DocumentError("no-file", str(error.strerror)) from error


def _decompressed(name: str, limit: int) -> bytes:
    import gzip
    import zlib

    try:
        with gzip.open(name) as file:
            return file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DocumentError("bad-gzip", str(error)) from error


def print_error(document: str, error: TamisError, *, as_json: bool) -> None:
    """Print why a document is refused, in its line of the results."""
    if not as_json:
        print(f"{document}\tERROR {error}")
        return
    row: dict[str, Any] = {"document": document, "error": error.code, "reason": error.reason}
    if isinstance(error, PositionedError):
        row |= {"line": error.line, "column": error.column}
    print(json.dumps(row, ensure_ascii=False))
