"""Payloads as text, for JSON."""

from tamis.sources.bytestream import StreamError
from tamis.sources.transcode import UTF8, encoding_of


def text_of(payload: bytes, encoding: str | None) -> str | None:
    """A payload as text; None if it is not UTF-8: its XML declaration would not be true of the JSON text."""
    try:
        mark = 0
        if encoding is None:
            encoding, mark = encoding_of(payload)
        # ASCII is UTF-8 too.
        if encoding.lower() not in (UTF8, "us-ascii"):
            return None
        return payload[mark:].decode()
    except (StreamError, UnicodeDecodeError):
        return None
