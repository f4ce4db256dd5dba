"""Convert any supported encoding to UTF-8 in chunks, and map UTF-8 lengths back to bytes of the file."""

import codecs
import re

from tamis.sources.bytestream import StreamError

HEAD_BYTES = 1 << 10
"""The encoding is detected from this many bytes at the beginning of a file."""

# Bytes that cannot be decoded become a character that XML does not allow, so the XML reader refuses the
# message. It stands for one code unit, so that the text still tells the number of bytes.
_ILLEGAL = "\uffff"

_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")


def _substitute(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError):
        return _ILLEGAL, error.end
    assert isinstance(error, UnicodeEncodeError)
    return b"?" * (error.end - error.start), error.end


codecs.register_error("tamis-substitute", _substitute)


def encoding_of(head: bytes) -> tuple[str, int]:
    """The encoding of a file by its first `HEAD_BYTES`, and the length of its byte order mark."""
    if head.startswith((b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00", b"\x00\x00\x00<", b"<\x00\x00\x00")):
        raise StreamError("unsupported-encoding", "UTF-32 is not supported; send UTF-8")
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if head.startswith(mark):
            return encoding, len(mark)
    if head.startswith(b"<\x00"):
        return "utf-16-le", 0
    if head.startswith(b"\x00<"):
        return "utf-16-be", 0
    declared = _DECLARED.match(head)
    return (_codec_name(declared[1].decode()) if declared else "utf-8"), 0


def _codec_name(name: str) -> str:
    """The codec of a declared encoding; it must have one byte a character and agree with ASCII below 128."""
    if name.upper() in ("UTF-8", "UTF8", "US-ASCII", "ASCII"):
        return "utf-8"
    every = bytes(range(256))
    try:
        text = every.decode(name, "replace")
    except (LookupError, UnicodeError):
        text = ""
    if len(text) != 256 or text[:128] != every[:128].decode("ascii"):
        raise StreamError(
            "unsupported-encoding", f"the encoding {name} is not supported; send UTF-8 or UTF-16"
        )
    return codecs.lookup(name).name


class Transcoder:
    """An incremental decoder. UTF-8 passes through unchecked: the XML reader checks it."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._is_utf8 = encoding == "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)("tamis-substitute")

    def utf8(self, raw: bytes) -> bytes:
        """A chunk in UTF-8; an empty chunk is the end of the file."""
        return raw if self._is_utf8 else self._decoder.decode(raw, final=not raw).encode()

    def source_length(self, utf8: bytearray, count: int) -> int:
        """How many bytes of the file the first `count` bytes of UTF-8 came from."""
        return (
            count if self._is_utf8 else len(utf8[:count].decode().encode(self.encoding, "tamis-substitute"))
        )
