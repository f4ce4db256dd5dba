"""Messages and outputs as the content of another XML document: without XML declaration and DOCTYPE."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tamis.engine import read_batch
from tamis.model.matching import Limits
from tamis.sources.bytestream import StreamError
from tamis.sources.markup import doctype_end
from tamis.sources.transcode import utf8_form

_DECLARATION = re.compile(rb"<\?xml\s[^>]*?\?>")

_MISC = re.compile(rb"(?:\s++|<!--(?:(?!-->)[\s\S])*+-->|<\?(?:(?!\?>)[\s\S])*+\?>)*+")
"""White space, comments and processing instructions before a DOCTYPE."""

_LITERAL = re.compile(rb"""\"[^"]*+\"|'[^']*+'""")

_UNLIMITED = (1 << 31) - 1

# They are within the limits of their source already; here only well-formedness counts.
_NO_LIMITS = Limits(
    document=_UNLIMITED, depth=1 << 16, attributes=1 << 16, namespaces=1 << 16, name=1 << 20, text=_UNLIMITED
)


def as_xml_content(messages: Sequence[bytes]) -> list[bytes | None]:
    """Each message or output as UTF-8 content; None if it is not well-formed content."""
    stripped = [_stripped(message) for message in messages]
    # The output of a transformation may be several elements, or text.
    content = [None if part is None else b"<content>%s</content>" % part for part in stripped]
    read = read_batch(pa.array(content, pa.large_binary()), _NO_LIMITS)
    refused: list[Any] = read.errors.column("message").to_pylist()
    for at in refused:
        stripped[at] = None
    return stripped


def _stripped(message: bytes) -> bytes | None:
    try:
        text = utf8_form(message)
    except StreamError:
        return None
    declaration = _DECLARATION.match(text)
    start = declaration.end() if declaration else 0
    misc = _MISC.match(text, start)
    at = misc.end() if misc else start
    if not text.startswith(b"<!DOCTYPE", at):
        return text[start:]
    end = doctype_end(bytearray(text), at)
    if end is None or b"[" in _LITERAL.sub(b"", text[at:end]):
        # An internal subset may define entities and defaults, so it cannot be removed.
        return None
    return text[start:at] + text[end:]
