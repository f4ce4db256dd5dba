"""Messages, and what is made of them, as they can stand inside another document."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tamis.engine import read_batch
from tamis.model.matching import Limits
from tamis.sources.bytestream import StreamError
from tamis.sources.markup import doctype_end
from tamis.sources.transcode import HEAD_BYTES, encoding_of

_DECLARATION = re.compile(rb"<\?xml\s[^>]*?\?>")

_MISC = re.compile(rb"(?:\s++|<!--(?:(?!-->)[\s\S])*+-->|<\?(?:(?!\?>)[\s\S])*+\?>)*+")
"""What may stand before a DOCTYPE."""

_LITERAL = re.compile(rb"""\"[^"]*+\"|'[^']*+'""")

_MOST = (1 << 31) - 1

# They have passed the limits of their source; here only their form is asked for.
_NO_LIMITS = Limits(
    document=_MOST, depth=1 << 16, attributes=1 << 16, namespaces=1 << 16, name=1 << 20, text=_MOST
)


def embedded(messages: Sequence[bytes]) -> list[bytes | None]:
    """Messages and outputs in UTF-8 without XML declaration and DOCTYPE; None for what is no content then."""
    stripped = [_stripped(message) for message in messages]
    # What a transformation makes may be several elements, or text.
    content = [None if part is None else b"<content>%s</content>" % part for part in stripped]
    read = read_batch(pa.array(content, pa.large_binary()), _NO_LIMITS)
    refused: list[Any] = read.errors.column("message").to_pylist()
    for at in refused:
        stripped[at] = None
    return stripped


def _stripped(message: bytes) -> bytes | None:
    try:
        encoding, mark = encoding_of(message[:HEAD_BYTES])
        text = message[mark:].decode(encoding).encode()
    except (StreamError, UnicodeError):
        return None
    declaration = _DECLARATION.match(text)
    start = declaration.end() if declaration else 0
    misc = _MISC.match(text, start)
    at = misc.end() if misc else start
    if not text.startswith(b"<!DOCTYPE", at):
        return text[start:]
    end = doctype_end(bytearray(text), at)
    if end is None or b"[" in _LITERAL.sub(b"", text[at:end]):
        # An internal subset has a say in what the message means: it cannot be left out.
        return None
    return text[start:at] + text[end:]
