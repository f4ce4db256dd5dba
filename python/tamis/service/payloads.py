"""Payloads as text, for JSON."""

import codecs

from tamis.sources.bytestream import StreamError
from tamis.sources.transcode import HEAD_BYTES, encoding_of


def text_of(payload: bytes, encoding: str | None) -> str | None:
    """A payload as text; None if it is not UTF-8: its XML declaration would not be true of the JSON text."""
    try:
        mark = 0
        if encoding is None:
            encoding, mark = encoding_of(payload[:HEAD_BYTES])
        if codecs.lookup(encoding).name != "utf-8":
            return None
        return payload[mark:].decode()
    except (StreamError, LookupError, UnicodeDecodeError):
        return None
