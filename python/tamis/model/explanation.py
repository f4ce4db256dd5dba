"""Why a query did or did not match a message."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a message: its number in pre-order, and its bytes in the UTF-8 form."""

    node: int
    start: int
    end: int

    def told(self, message: bytes) -> str:
        """Where it is and how it begins."""
        line = message.count(b"\n", 0, self.start) + 1
        begins = message[self.start : min(self.end, self.start + 60)].decode(errors="ignore")
        return f"line {line}: {begins.splitlines()[0] if begins else ''}"


@dataclass(frozen=True, slots=True)
class Line:
    """A linear path of the query, with at most one test at its end."""

    text: str
    holds: bool
    nodes: int
    """How many nodes it binds."""
    failing: str | None
    """If it does not hold, the part that fails."""
    fails_at: Place | None
    """The first node that the part before it binds; none if even the first step binds nothing."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way for the query to match: lines that hold, and lines that do not."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]
    indexed: bool
    """Whether the index has the query."""
    filed: int | None
    """The line that is its access test; none makes it a candidate for every message."""
    candidate: bool
    survives: bool
    """Whether all lines hold as they should."""
    verified: bool
    """Whether lines alone do not settle it, so that the document itself is looked at."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A part of a transformation's plan, which others may share."""

    kind: str
    """stream, join, selection, condition, bindings or group."""
    text: str
    shared: int
    """How many transformations of the index use it, this one included."""
    results: int
    """How much it gave for the message."""
    note: str
    """How it runs, and what a claim about the query or the DTD spared it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer; `reason` is the short one."""

    canonical: str
    matches: bool
    reason: str
    nodes: tuple[Place, ...]
    """The nodes it selects."""
    lines: tuple[Line, ...]
    alternatives: tuple[Alternative, ...]
    operators: tuple[Operator, ...] = ()
    """What a transformation that matches runs."""

    @classmethod
    def of(
        cls,
        canonical: str,
        matches: bool,
        reason: str,
        nodes: Sequence[Any],
        lines: Sequence[Any],
        alternatives: Sequence[Any],
        operators: Sequence[Any],
    ) -> Self:
        """From the plain values that the kernel gives."""

        def line(text: str, holds: bool, count: int, failure: Any) -> Line:
            part, at = failure or (None, None)
            return Line(text, holds, count, part, Place(*at) if at else None)

        return cls(
            canonical,
            matches,
            reason,
            tuple(Place(*node) for node in nodes),
            tuple(line(*given) for given in lines),
            tuple(Alternative(tuple(p), tuple(n), *rest) for p, n, *rest in alternatives),
            tuple(Operator(*given) for given in operators),
        )

    def told(self, message: bytes) -> str:
        """The explanation as text, for people; `message` is the one it was asked about."""
        told = [self.canonical, "matches" if self.matches else f"does not match: {self.reason}"]
        told += [f"  selects {node.told(message)}" for node in self.nodes[:10]]
        if len(self.nodes) > 10:
            told.append(f"  and {len(self.nodes) - 10} more")
        told.append("paths:")
        for number, line in enumerate(self.lines):
            held = f"holds of {line.nodes}" if line.holds else "does not hold"
            told.append(f"  {number}  {line.text}  {held}")
            if line.failing is not None:
                where = f" at {line.fails_at.told(message)}" if line.fails_at else ""
                told.append(f"       {line.failing} fails{where}")
        told.append("alternatives:")
        told += [f"  {self._way(alternative)}" for alternative in self.alternatives]
        if self.operators:
            told.append("operators:")
        for operator in self.operators:
            others = operator.shared - 1
            shared = f"shared with {others} other{'' if others == 1 else 's'}" if others else "not shared"
            told.append(
                f"  {operator.kind:9}  {operator.text}: {operator.results}; {operator.note}; {shared}"
            )
        return "\n".join(told)

    def _way(self, alternative: Alternative) -> str:
        wanted = [str(line) for line in alternative.positive]
        wanted += [f"not {line}" for line in alternative.negative]
        says = [", ".join(wanted) or "nothing necessary"]
        if alternative.indexed:
            access = "no line" if alternative.filed is None else f"line {alternative.filed}"
            says.append(f"access test: {access}")
        says.append("a candidate" if alternative.candidate else "no candidate")
        if alternative.candidate:
            says.append("survives its tests" if alternative.survives else "fails a test")
            if alternative.survives and alternative.verified:
                says.append("verified on the document where a branching step binds several elements")
        return "; ".join(says)
