"""Checks of a run: figures against bars, counts against expected ones, answers against an oracle."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.bench.measure import Timed


@dataclass(frozen=True)
class Check:
    """`value` may be at most `bar`, or where it says so must be at least that."""

    name: str
    value: float
    bar: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the value satisfies the bar."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar


@dataclass(frozen=True)
class Confirmation:
    """How many pairs were compared with an oracle, how many of them match, and where it disagrees."""

    pairs: int
    matches: int
    differences: tuple[str, ...]

    def problems(self, oracle: str) -> Iterator[str]:
        """The disagreements with the oracle, as problems."""
        if self.differences:
            first = "; ".join(self.differences[:3])
            yield f"{len(self.differences)} of {self.pairs} answers differ from {oracle}'s: {first}"


def against(run: Mapping[str, Any], result: Timed, earlier: Mapping[str, Timed]) -> Iterator[Check]:
    """A run's steady state beside that of an earlier run, if it names one."""
    other = run.get("against")
    if other is not None and other["run"] in earlier:
        # As ratios to expat in the same run: the machine may have been busier in one of them.
        ratio = result.ratio("warm") / earlier[other["run"]].ratio("warm")
        yield Check(f"warm, × “{other['run']}”", ratio, other["warm"])


def miscounted(run: Mapping[str, Any], matches: int) -> Iterator[str]:
    """A problem if the number of matches differs from the expected one."""
    expected = run.get("matches")
    if expected is None:
        yield f"no match count is stated; it is {matches}"
    elif matches != expected:
        yield f"{matches} matches where {expected} are expected"
