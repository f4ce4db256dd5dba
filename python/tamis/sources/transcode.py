"""Convert any supported encoding to UTF-8, and map UTF-8 lengths back to bytes of the file."""

from contextlib import suppress

from tamis import engine
from tamis.errors import ReadError
from tamis.sources.bytestream import StreamError

HEAD_BYTES = 1 << 10
"""The encoding is detected from this many bytes at the beginning of a file."""

UNDECODABLE = "\uffff".encode()
"""Stands for bytes that cannot be decoded. XML does not allow this character, so the reader refuses it."""

UTF8 = "utf-8"
"""The label of the encoding that needs no conversion."""


def encoding_of(head: bytes) -> tuple[str, int]:
    """The label of a file's encoding by its first `HEAD_BYTES`, and the length of its byte order mark."""
    try:
        return engine.detect_encoding(head[:HEAD_BYTES])
    except ReadError as error:
        raise StreamError(error.code, error.reason) from error


def utf8_form(message: bytes) -> bytes:
    """A message in UTF-8, without its byte order mark; U+FFFF stands for what is not in its encoding."""
    encoding, mark = encoding_of(message)
    return Transcoder(encoding).utf8(message[mark:], is_last=True)


def display_text(message: bytes) -> str:
    """A message as text, with replacement characters for what cannot be decoded."""
    with suppress(StreamError):
        message = utf8_form(message)
    return message.decode(errors="replace").replace("\uffff", "\ufffd")


def mismatch_of_string(utf8: bytes) -> str | None:
    """How the declaration of a message that came as a string contradicts UTF-8; None if it does not.

    Such a message is UTF-8, but the reader would decode it by its declaration. Malformed messages are left
    to the reader.
    """
    if not utf8.startswith(b"<?xml") or utf8.isascii():
        return None
    with suppress(StreamError):
        encoding, _ = encoding_of(utf8)
        if encoding not in (UTF8, "us-ascii"):
            return f"the declared encoding is {encoding}, but the message is in UTF-8: it came as a string"
    return None


class Transcoder:
    """An incremental decoder. UTF-8 passes through unchecked: the XML reader checks it."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._decoder = None if encoding == UTF8 else engine.Transcoder(encoding)

    def utf8(self, raw: bytes, *, is_last: bool) -> bytes:
        """The next chunk in UTF-8."""
        return raw if self._decoder is None else self._decoder.utf8(raw, is_last)

    def source_length(self, count: int) -> int:
        """How many bytes of the file the next `count` bytes of UTF-8 came from."""
        return count if self._decoder is None else self._decoder.consume(count)
