"""Payloads as text, for where there are no bytes: in JSON."""

import codecs

from tamis.sources.bytestream import StreamError
from tamis.sources.transcode import HEAD_BYTES, encoding_of


def text_of(payload: bytes, encoding: str | None) -> str | None:
    """A payload as text, as far as it can be told: what says that it is Latin-1 would lie, in JSON."""
    try:
        mark = 0
        if encoding is None:
            encoding, mark = encoding_of(payload[:HEAD_BYTES])
        if codecs.lookup(encoding).name != "utf-8":
            return None
        return payload[mark:].decode()
    except (StreamError, LookupError, UnicodeDecodeError):
        return None
