"""Literals of queries."""


def number_of(value: str) -> float | None:
    """The value as a number, by XPath 1.0's grammar."""
    stripped = value.strip(" \t\r\n")
    digits = stripped.removeprefix("-")
    if not digits.strip(".") or not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        return None
    return float(stripped)


def quote(value: str) -> str:
    """A string literal; a value with both kinds of quotes loses one."""
    if "'" in value and '"' in value:
        value = value.replace("'", "")
    return f'"{value}"' if "'" in value else f"'{value}'"
