"""Classifies errors: is a file of a generation damaged, or is the generation lost?

Damaged copies in a host's cache are fetched again (`opener`). What is damaged in the store is removed and
compiled again from the catalog (`publisher`).
"""

from tamis.errors import TamisError

DAMAGE = frozenset({"segment-damaged", "snapshot-damaged", "store-damaged", "kernel-panic"})
"""Codes of errors by files that are not what was written. A panic may come from damage, too."""

LOST = DAMAGE | {"no-generation", "no-snapshot", "segment-format"}
"""Codes of errors by generations that cannot be opened: damaged, swept, or of another version of tamis."""


def is_damage(error: TamisError) -> bool:
    """Whether files of a generation are damaged."""
    return error.code in DAMAGE


def is_lost(error: TamisError) -> bool:
    """Whether a generation cannot be opened, and never will be."""
    return error.code in LOST
