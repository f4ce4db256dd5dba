"""Any encoding → UTF-8, piece by piece, and back to how many bytes a piece was."""

import codecs
import re

from tamis.sources.bytestream import StreamError

HEAD_BYTES = 1 << 10
"""The beginning of a file that its encoding is told by."""

# What cannot be decoded becomes a character that is no XML: the reader of messages will refuse it. It
# stands for one unit, so that the number of bytes can be told from the text.
_ILLEGAL = "\uffff"

_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError):
        return _ILLEGAL, error.end
    assert isinstance(error, UnicodeEncodeError)
    return b"?" * (error.end - error.start), error.end


codecs.register_error("tamis-stand-in", _stand_in)


def encoding_of(head: bytes) -> tuple[str, int]:
    """The encoding of a file by its first `HEAD_BYTES`, and how many bytes its byte order mark has."""
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
    return (_known(declared[1].decode()) if declared else "utf-8"), 0


def _known(name: str) -> str:
    """The codec of a declared encoding, if it is one byte a character and ASCII where ASCII is."""
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
    """A decoder with a memory of what is left of a piece. UTF-8 passes as it is, right or wrong."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._plain = encoding == "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)("tamis-stand-in")

    def utf8(self, raw: bytes) -> bytes:
        """A piece in UTF-8; an empty one is the end."""
        return raw if self._plain else self._decoder.decode(raw, final=not raw).encode()

    def width(self, utf8: bytearray, count: int) -> int:
        """How many bytes of the file the first bytes of UTF-8 stand for."""
        return count if self._plain else len(utf8[:count].decode().encode(self.encoding, "tamis-stand-in"))
