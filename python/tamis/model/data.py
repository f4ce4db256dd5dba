"""Local data: records that stay, and that queries join with messages."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.model.message_batch import Messages


@dataclass(frozen=True, slots=True)
class Data:
    """Records, each a well-formed XML document, in their order.

    `collection('name')` in a query is all of them, `doc('name')` the only one.
    """

    records: "Messages"


@dataclass(frozen=True, slots=True)
class DataFiles:
    """A version of a data set as it is stored: immutable files, each named by the hash of its content."""

    manifest: str
    """The file that names the others; the name of the version."""
    files: tuple[tuple[str, int], ...]
    """All files with their sizes in bytes, the manifest last."""
    records: int
    segments: int
    removed: int
    """Records that are stored and were replaced or removed since, and what marks them."""

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(size for _, size in self.files)
