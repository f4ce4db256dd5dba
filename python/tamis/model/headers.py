"""Headers: what a publisher says of a message beside its XML, such as `priority = high`.

They are part of the envelope. There and wherever they are stored they are the text of a JSON object, with the
names in order: equal headers are equal texts. A message without headers has null.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tamis.errors import TamisError

MAX_HEADERS = 64
MAX_BYTES = 8 << 10
"""The most headers of a message, and the most bytes of their names and values together, in UTF-8."""

NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
"""What HTTP allows as the name of a header, so that every sink can carry it."""

RESERVED = "tamis-"
"""The prefix of the headers that sinks add, in any case."""

NO_VALUE = r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]"
"""Characters that a value cannot have: a line break would end a header in HTTP, the others are not XML."""

_NAME = re.compile(NAME)
_FORBIDDEN = re.compile(rf"{NO_VALUE}|[\ud800-\udfff]")


class HeaderError(TamisError):
    """Headers that are too many, too long or malformed."""


def pack_headers(headers: Any) -> str | None:
    """Headers as they are stored; `HeaderError` unless they are an object of strings within the limits."""
    if not headers and (headers is None or isinstance(headers, Mapping)):
        return None
    if not isinstance(headers, Mapping):
        raise HeaderError("bad-header", 'headers are an object of strings, such as {"priority": "high"}')
    size = 0
    for name, value in headers.items():
        reason = _malformed(name, value)
        if reason is not None:
            raise HeaderError("bad-header", reason)
        size += len(name) + len(value.encode())
    if len(headers) > MAX_HEADERS:
        raise HeaderError("header-limit", f"there are {len(headers)} headers, {MAX_HEADERS} are allowed")
    if size > MAX_BYTES:
        raise HeaderError("header-limit", f"the headers have {size} bytes, {MAX_BYTES} are allowed")
    return _text(headers)


def unpack_headers(stored: str | None) -> dict[str, str]:
    """Stored headers as a dictionary."""
    headers: dict[str, str] = {} if stored is None else json.loads(stored)
    return headers


def merge_headers(outer: Mapping[str, str], inner: str | None) -> str | None:
    """The headers of a message with those of its file or source; its own count where both have a name."""
    return pack_headers({**outer, **unpack_headers(inner)}) if outer else inner


def parse_headers(pairs: Iterable[str]) -> dict[str, str]:
    """Headers as they are given on a command line: `NAME=VALUE` each."""
    headers = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise HeaderError("bad-header", f"{pair!r} is not of the form NAME=VALUE")
        headers[name] = value
    pack_headers(headers)
    return headers


def _malformed(name: Any, value: Any) -> str | None:
    """What is wrong with a header."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{name!r} cannot be the name of a header: letters, digits and !#$%&'*+.^_`|~- can"
    if name.lower().startswith(RESERVED):
        return f"the header {name!r} begins with {RESERVED!r}, which is kept for the headers of deliveries"
    if not isinstance(value, str):
        return f"the value of the header {name!r} is not a string"
    if _FORBIDDEN.search(value):
        return f"the value of the header {name!r} has a control character or half of a surrogate pair"
    return None


def _text(headers: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(headers.items())), ensure_ascii=False, separators=(",", ":"))
