"""Which state of a catalog: what generations record, and changes are asked for by."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A state that a catalog was in. The same version is the same state."""

    count: int
    """How often the catalog had been changed."""
    mark: str
    """Random, made with the change. A catalog that was restored from a backup counts to the same
    numbers again, by other changes: the marks differ."""
