"""The result of reading a file: messages, and regions of it that are no message."""

from dataclasses import dataclass

RAW_BYTES = 64 << 10
"""The most bytes of a region without a message that its dead letter keeps."""


@dataclass(frozen=True, slots=True)
class RawMessage:
    """One message of a file, or one region that is no message: then `code` and `reason` are set.

    The messages and regions of a file are numbered from 1 in file order, in one sequence. A number means the
    same message whenever the file is read again.
    """

    number: int
    offset: int
    """Where it starts: in bytes of the decompressed file, or in rows of a table."""
    xml: bytes
    code: str | None = None
    reason: str | None = None
    id: str | None = None
    """The message id, if the file gives one."""
    encoding: str | None = None
    """The encoding of `xml`, if the file format fixes it; otherwise the XML declaration tells."""
    headers: str | None = None
    """Its headers as they are stored, if the file gives any."""
