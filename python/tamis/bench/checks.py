"""A figure held against its bar."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """`value` may be at most `bar`, or where it says so must be at least that."""

    name: str
    value: float
    bar: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the bar is kept."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar
