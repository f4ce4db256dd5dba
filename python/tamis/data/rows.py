"""Rows of tables → XML: an element `row` with a child per column.

Null is no child. Nested columns are nested elements, a list is the same element several times. Dates are as
in ISO 8601, numbers without exponent.
"""

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

from tamis.errors import DataError

_NAME = re.compile(r"[^\W\d][\w.\-·]*")
_LINE_END = {"\r": "&#13;"}
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rows_as_xml(rows: Iterable[Mapping[str, Any]], place: str) -> Iterator[bytes]:
    """A record per row; `place` names the table in errors."""
    for number, row in enumerate(rows, start=1):
        try:
            yield f"<row>{_children(row)}</row>".encode()
        except DataError as error:
            raise DataError(error.code, f"{place}: row {number}: {error.reason}") from None


def check_columns(names: Iterable[str], place: str) -> None:
    """Refuse columns that no element can be named after, or that are there twice."""
    seen = set()
    for name in names:
        if not _NAME.fullmatch(name):
            raise DataError("bad-column", f"{place}: the column {name!r} is no name of an element")
        if name in seen:
            raise DataError("bad-column", f"{place}: there are two columns {name!r}")
        seen.add(name)


def _children(row: Mapping[str, Any]) -> str:
    return "".join(_element(name, value) for name, value in row.items())


def _element(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        check_columns(value, name)
        return f"<{name}>{_children(value)}</{name}>"
    if isinstance(value, (list, tuple)):
        return "".join(_element(name, one) for one in value)
    text = _text(name, value)
    if found := _FORBIDDEN.search(text):
        raise DataError("bad-character", f"{name} has the character U+{ord(found[0]):04X}, which XML has not")
    # A line end as a character reference is not normalised.
    return f"<{name}>{escape(text, _LINE_END)}</{name}>"


def _text(name: str, value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return format(value, "f")
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case float():
            return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            raise DataError("bad-value", f"{name} is of a type that has no text: {type(value).__name__}")
