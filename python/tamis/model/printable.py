"""Text of others, for the terminal."""


def printable(text: str) -> str:
    """Text on one line, as long as it was: nothing in a message may move the cursor."""
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "·" for sign in text)
