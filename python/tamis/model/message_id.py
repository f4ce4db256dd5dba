"""The rule for message ids that publishers give, the same for all sources."""

import re

MAX_CHARACTERS = 1_000

CONTROL = r"[\x00-\x1f\x7f]"
"""PostgreSQL cannot store U+0000, and a line break would end a line of a log or a table."""

_FORBIDDEN = re.compile(rf"{CONTROL}|[\ud800-\udfff]")


def id_error(message_id: str) -> str | None:
    """Why an id is not allowed; None if it is."""
    if len(message_id) > MAX_CHARACTERS:
        return f"the id has {len(message_id)} characters, {MAX_CHARACTERS} are allowed"
    if _FORBIDDEN.search(message_id):
        return "the id has a control character or half of a surrogate pair"
    return None
