"""The version of a table of routes: what a neighbour wants, and how to know that both ends have the same.

A neighbour counts the changes of its table; the count starts again with each process, which has a random
mark. The hash is the sum of the hashes of all rows, so that a change costs what it changes. Tables with equal
hashes have equal rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

EVERYTHING = "*"
"""In place of a hash: the neighbour wants every message, because it does not know yet what is wanted."""

EMPTY = "0" * 32
"""The hash of a table without rows: the neighbour wants nothing."""

TenantRow = tuple[str, str]
"""A tenant, and a row as the text of a query."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of what a neighbour wants."""

    count: int
    mark: str
    hash: str


def changed_hash(hash: str, added: Iterable[TenantRow], removed: Iterable[TenantRow]) -> str:
    """The hash of a table after rows were added and removed."""
    total = int(hash, 16) + sum(map(_row_hash, added)) - sum(map(_row_hash, removed))
    return f"{total % (1 << 128):032x}"


def row_key(row: TenantRow) -> str:
    """A hash that identifies a row in its table."""
    return f"{_row_hash(row):032x}"


def _row_hash(row: TenantRow) -> int:
    digest = blake2b(digest_size=16)
    for part in row:
        text = part.encode()
        digest.update(len(text).to_bytes(8, "big"))
        digest.update(text)
    return int.from_bytes(digest.digest(), "big")
