"""The size and the hash of a file, to verify copies of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class File:
    """The size and hash of a file, to verify it."""

    size: int
    hash: str

    @staticmethod
    def of(path: Path) -> "File":
        """Measure a file and hash its content with BLAKE2b, 128 bits."""
        with path.open("rb") as file:
            return File.read(file)

    @staticmethod
    def read(file: Any) -> "File":
        """Measure and hash what an open file gives."""
        digest, size = hashlib.blake2b(digest_size=16), 0
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
        return File(size, digest.hexdigest())
