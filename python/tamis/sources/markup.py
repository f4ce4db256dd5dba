"""Regular expressions for XML markup: tags, namespace declarations, the end of a DOCTYPE.

All quantifiers are possessive: there is no backtracking, so no input makes a search slow.
"""

import re
from functools import lru_cache
from typing import Final, TypeAlias

Declarations: TypeAlias = dict[str, str]
"""Prefix ('' for the default namespace) → URI as written, with its quotes."""

NAME: Final = rb"""[A-Za-z_:\x80-\xff][^\s<>/"'=&!?]*+"""

START_TAG: Final = re.compile(
    rb"<(" + NAME + rb""")(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+(?:"[^"<]*+|'[^'<]*+)?+"""
)
"""A start tag up to its `>`. The next byte tells whether the tag is complete, cut off or malformed."""

END_TAG: Final = re.compile(rb"</(" + NAME + rb")\s*+")

_ATTRIBUTE = re.compile(rb"""\s([^\s=<>/"']++)\s*+=\s*+("[^"<]*+"|'[^'<]*+')""")

_DOCTYPE = re.compile(
    rb"""<!DOCTYPE(?:[^\[\]<>"']++|"[^"]*+"|'[^']*+')*+"""
    rb"""(?:\[(?:[^\]"'<]++|"[^"]*+"|'[^']*+'|<!--(?:(?!-->)[\s\S])*+-->|<\?(?:(?!\?>)[\s\S])*+\?>|<)*+\]\s*+)?+>"""
)

_OPENERS = (b"<!--", b"<![CDATA[", b"<!DOCTYPE", b"<?", b"</", b"<")


def opener(data: bytearray, at: int) -> bytes:
    """The kind of markup that starts at a `<`."""
    return next(kind for kind in _OPENERS if data.startswith(kind, at))


def doctype_end(data: bytearray, at: int) -> int | None:
    """Where a DOCTYPE ends; None if it is incomplete."""
    match = _DOCTYPE.match(data, at)
    return match.end() if match else None


def declarations(tag: bytes) -> Declarations:
    """The namespace declarations of a start tag."""
    found = {}
    for attribute in _ATTRIBUTE.finditer(tag):
        name = attribute[1]
        if name == b"xmlns" or name.startswith(b"xmlns:"):
            found[name[6:].decode(errors="replace")] = attribute[2].decode(errors="replace")
    return found


def with_declarations(record: bytes, name: bytes, scope: Declarations) -> bytes:
    """An element with the declarations of a scope added to its start tag."""
    carried = "".join(
        f" xmlns:{prefix}={uri}" if prefix else f" xmlns={uri}" for prefix, uri in scope.items()
    )
    end = 1 + len(name)
    return b"".join((record[:end], carried.encode(), record[end:]))


class RecordName:
    """The name of record elements: as written (`item`, `p:item`), or `{uri}local`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.uri: str | None = None
        local = text
        if text.startswith("{"):
            self.uri, _, local = text[1:].partition("}")
        self._local = local.encode()
        prefix = rb"(?:[^\s<>/:!?]++:)?" if self.uri is not None else b""
        self.start = re.compile(rb"<" + prefix + re.escape(self._local) + rb"(?=[\s/>])")
        """Where a record may start; with a URI, the prefix must be resolved too."""

    def matches(self, name: bytes, scope: Declarations) -> bool:
        """Whether an element of this name is a record, given the declarations in scope."""
        if self.uri is None:
            return name == self._local
        prefix, _, local = name.rpartition(b":")
        if local != self._local:
            return False
        return scope.get(prefix.decode(errors="replace"), "''")[1:-1] == self.uri

    @staticmethod
    @lru_cache(64)
    def nested_markup(name: bytes) -> re.Pattern[bytes]:
        """A pattern for markup that matters inside a record: tags of its name, and what may hide a tag."""
        return re.compile(rb"<(?:(/?)" + re.escape(name) + rb"(?=[\s/>])|!--|!\[CDATA\[|\?)")
