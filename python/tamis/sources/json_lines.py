"""JSON lines: one message a line, `{"id": …, "xml": …, "headers": {…}}`; id and headers may be left out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tamis.model.headers import MAX_BYTES, HeaderError, pack_headers
from tamis.model.matching import Limits
from tamis.model.message_id import id_error
from tamis.sources.bytestream import ByteStream, StreamError
from tamis.sources.raw_message import RAW_BYTES, RawMessage
from tamis.sources.transcode import mismatch_of_string

_CHUNK = 1 << 18

# Skipped in one step: a compressed file may have millions of them.
_BLANK_LINES = re.compile(rb"[ \t\r\n]*\n")


class JsonLines:
    """The messages of a JSON lines file. `position` is where a new reader would continue."""

    def __init__(self, stream: ByteStream, limits: Limits, position: dict[str, Any] | None = None) -> None:
        """`stream` is open at the position's offset."""
        self._stream = stream
        self._offset: int = position["offset"] if position else 0
        self._number: int = position["number"] if position else 0
        # JSON may escape a character as six; RAW_BYTES leave room for the id.
        self._longest = 6 * (limits.document + MAX_BYTES) + RAW_BYTES

    @property
    def position(self) -> dict[str, Any]:
        return {"offset": self._offset, "number": self._number}

    def sizes(self) -> Iterator[int]:
        return (len(line.xml) for line in self._lines())

    def messages(self) -> Iterator[RawMessage]:
        return (line if line.code else _message(line) for line in self._lines())

    def _lines(self) -> Iterator[RawMessage]:
        """Each line that is not blank, or its first bytes if it is too long."""
        data, skipped, searched = bytearray(), 0, 0
        while True:
            if not searched and (blank := _BLANK_LINES.match(data)):
                self._offset += blank.end()
                del data[: blank.end()]
            end = data.find(b"\n", searched)
            if end < 0:
                if len(data) + skipped > self._longest:
                    # Too long for a message: keep only its first bytes.
                    skipped += max(0, len(data) - RAW_BYTES)
                    del data[RAW_BYTES:]
                searched = len(data)
                try:
                    chunk = self._stream.read(_CHUNK)
                except StreamError as error:
                    yield self._region(data, skipped, error.code, error.reason)
                    return
                if chunk:
                    data += chunk
                    continue
            line = data if end < 0 else data[: end + 1]
            if line.strip():
                size = len(line) + skipped
                if size > self._longest:
                    reason = f"the line has {size} bytes, {self._longest} are allowed"
                    yield self._region(line, skipped, "line-limit", reason)
                else:
                    yield self._region(line, 0, None, None)
            else:
                self._offset += len(line)
            if end < 0:
                return
            del data[: end + 1]
            skipped = searched = 0

    def _region(self, line: bytearray, skipped: int, code: str | None, reason: str | None) -> RawMessage:
        self._number += 1
        region = RawMessage(
            self._number, self._offset, bytes(line[:RAW_BYTES] if code else line), code, reason
        )
        self._offset += len(line) + skipped
        return region


def _message(line: RawMessage) -> RawMessage:
    """Parse a line."""
    try:
        value = json.loads(line.xml)
    except (ValueError, RecursionError) as error:
        return _refused(line, "bad-json", f"the line is not JSON: {error}")
    xml = value.get("xml") if isinstance(value, dict) else None
    if not isinstance(xml, str):
        return _refused(line, "no-xml", 'the line is not an object with a string "xml"')
    id = value.get("id")
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int)):
        return _refused(line, "bad-id", '"id" is neither a string nor an integer')
    message_id = None if id is None else str(id)
    if message_id is not None and (reason := id_error(message_id)):
        return _refused(line, "bad-id", reason)
    try:
        headers = pack_headers(value.get("headers"))
    except HeaderError as error:
        return _refused(line, error.code, error.reason)
    try:
        utf8 = xml.encode()
    except UnicodeEncodeError as error:
        return _refused(line, "bad-json", f"the line has half of a surrogate pair: {error.reason}")
    if reason := mismatch_of_string(utf8):
        return _refused(line, "encoding-mismatch", reason)
    return RawMessage(line.number, line.offset, utf8, id=message_id, encoding="UTF-8", headers=headers)


def _refused(line: RawMessage, code: str, reason: str) -> RawMessage:
    return RawMessage(line.number, line.offset, line.xml[:RAW_BYTES], code, reason)
