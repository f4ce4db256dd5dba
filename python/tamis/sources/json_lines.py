"""JSON lines: one message a line, `{"id": …, "xml": …}`; the id may be left out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tamis.model.matching import Limits
from tamis.sources.bytestream import ByteStream, StreamError
from tamis.sources.raw_message import RAW_BYTES, Cut

_CHUNK = 1 << 18

# At once: a packed file may be millions of them.
_BLANK_LINES = re.compile(rb"[ \t\r\n]*\n")


class JsonLines:
    """The messages of a file of JSON lines. `position` is where a new reader would go on."""

    def __init__(self, stream: ByteStream, limits: Limits, position: dict[str, Any] | None = None) -> None:
        """`stream` is open at the position's offset."""
        self._stream = stream
        self._offset: int = position["offset"] if position else 0
        self._number: int = position["number"] if position else 0
        # JSON may write a character in six; and the id is there too.
        self._longest = 6 * limits.document + RAW_BYTES

    @property
    def position(self) -> dict[str, Any]:
        return {"offset": self._offset, "number": self._number}

    def sizes(self) -> Iterator[int]:
        return (len(line.xml) for line in self._lines())

    def cuts(self) -> Iterator[Cut]:
        return (line if line.code else _message(line) for line in self._lines())

    def _lines(self) -> Iterator[Cut]:
        """Each line that is not blank, or its beginning if it is too long."""
        data, skipped, searched = bytearray(), 0, 0
        while True:
            if not searched and (blank := _BLANK_LINES.match(data)):
                self._offset += blank.end()
                del data[: blank.end()]
            end = data.find(b"\n", searched)
            if end < 0:
                if len(data) + skipped > self._longest:
                    # Only the beginning is kept of what cannot be a message.
                    skipped += max(0, len(data) - RAW_BYTES)
                    del data[RAW_BYTES:]
                searched = len(data)
                try:
                    piece = self._stream.read(_CHUNK)
                except StreamError as error:
                    yield self._cut(data, skipped, error.code, error.reason)
                    return
                if piece:
                    data += piece
                    continue
            line = data if end < 0 else data[: end + 1]
            if line.strip():
                size = len(line) + skipped
                if size > self._longest:
                    reason = f"the line has {size} bytes, {self._longest} are allowed"
                    yield self._cut(line, skipped, "line-limit", reason)
                else:
                    yield self._cut(line, 0, None, None)
            else:
                self._offset += len(line)
            if end < 0:
                return
            del data[: end + 1]
            skipped = searched = 0

    def _cut(self, line: bytearray, skipped: int, code: str | None, reason: str | None) -> Cut:
        self._number += 1
        cut = Cut(self._number, self._offset, bytes(line[:RAW_BYTES] if code else line), code, reason)
        self._offset += len(line) + skipped
        return cut


def _message(line: Cut) -> Cut:
    """The message that a line holds."""
    raw = line.xml[:RAW_BYTES]
    try:
        value = json.loads(line.xml)
    except (ValueError, RecursionError) as error:
        return Cut(line.number, line.offset, raw, "bad-json", f"the line is no JSON: {error}")
    xml = value.get("xml") if isinstance(value, dict) else None
    if not isinstance(xml, str):
        return Cut(line.number, line.offset, raw, "no-xml", 'the line is no object with a string "xml"')
    given = value.get("id")
    if given is not None and not isinstance(given, str | int):
        return Cut(line.number, line.offset, raw, "bad-id", '"id" is neither a string nor a number')
    try:
        utf8 = xml.encode()
    except UnicodeEncodeError as error:
        return Cut(line.number, line.offset, raw, "bad-json", f"half a character in the line: {error.reason}")
    return Cut(line.number, line.offset, utf8, id=None if given is None else str(given), encoding="UTF-8")
