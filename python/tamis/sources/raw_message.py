"""What the readers of files give: messages, and regions that no message could be made of."""

from dataclasses import dataclass

RAW_BYTES = 64 << 10
"""So much of a region that is no message is kept for people to look at."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One message of a file, or one region that is none: then `code` and `reason` are set.

    Cuts of a file are numbered from 1 in file order, both kinds in one sequence, so that a number
    names the same cut whenever the file is read again.
    """

    number: int
    offset: int
    """Where it starts: bytes into the unpacked file, or rows for tables."""
    xml: bytes
    code: str | None = None
    reason: str | None = None
    id: str | None = None
    """The message id, where the file gives one."""
    encoding: str | None = None
    """What `xml` is encoded in, where that is known; otherwise the message says."""
