"""A durable append-only log of JSON lines. An incomplete last line, left by a crash, is ignored."""

import errno
import json
import os
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All lines; none if there is no file. An incomplete last line is truncated."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(path, len(whole))
    return [json.loads(line) for line in whole.splitlines()]


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Append a line; it is on disk when this returns. If this fails, nothing of it is."""
    # Unbuffered: on a full disk, nothing must be written later, when the file is closed.
    with path.open("ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        data = json.dumps(line).encode() + b"\n"
        try:
            if file.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            # The next line must not be appended to half a line.
            file.truncate(before)
            raise
