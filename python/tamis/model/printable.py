"""Untrusted text, made safe for a terminal."""


def printable(text: str) -> str:
    """Text on one line of the same length, without control characters."""
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "·" for sign in text)
