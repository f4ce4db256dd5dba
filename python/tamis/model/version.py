"""The version of a catalog. Generations record it; changes are read since one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a catalog: equal versions have equal content."""

    count: int
    """The number of changes so far."""
    mark: str
    """Random, new with each change. A catalog restored from a backup repeats counts with other content;
    the marks differ."""
