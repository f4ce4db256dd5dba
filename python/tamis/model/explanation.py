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

    def text(self, message: bytes) -> str:
        """Its line number and first characters."""
        line = message.count(b"\n", 0, self.start) + 1
        begins = message[self.start : min(self.end, self.start + 60)].decode(errors="ignore")
        return f"line {line}: {begins.splitlines()[0] if begins else ''}"


@dataclass(frozen=True, slots=True)
class Line:
    """A linear path of the query, with at most one test at its end."""

    text: str
    holds: bool
    nodes: int
    """The number of nodes it binds."""
    failing: str | None
    """If it does not hold, the part that fails."""
    fails_at: Place | None
    """The first node bound by the part before it; None if the first step binds nothing."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative of the query: lines that must hold, and lines that must not."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]
    indexed: bool
    """Whether the index contains the query."""
    filed: int | None
    """The line of its access test; None: a candidate for every message."""
    candidate: bool
    survives: bool
    """Whether all its lines hold or fail as required."""
    verified: bool
    """Whether it must be verified on the document."""
    inexact: str | None
    """Why its lines do not say all that the query says; None: they do."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A part of the query that is computed on the message."""

    text: str
    value: str
    at: Place | None
    """The node that a predicate tests; None: the document node."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a transformation's plan; other transformations may share it."""

    kind: str
    """stream, join, selection, condition, bindings or group."""
    text: str
    shared: int
    """The number of transformations of the index that use it."""
    results: int
    """The number of its results for the message."""
    note: str
    """How it runs, and which work the query or the DTD makes unnecessary."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a query matches; `reason` is the summary."""

    canonical: str
    matches: bool
    reason: str
    nodes: tuple[Place, ...]
    """The nodes it selects."""
    lines: tuple[Line, ...]
    alternatives: tuple[Alternative, ...]
    evaluated: tuple[Evaluated, ...] = ()
    """What is computed on the message, each part after those that it is computed from."""
    operators: tuple[Operator, ...] = ()
    """The operators of a matching transformation."""
    instead: str | None = None
    """The query that matches, if only the namespaces of names keep this one from matching."""

    @classmethod
    def of(
        cls,
        canonical: str,
        matches: bool,
        reason: str,
        found: tuple[Sequence[Any], ...],
        instead: str | None,
    ) -> Self:
        """From the plain values that the kernel gives."""

        def line(text: str, holds: bool, count: int, failure: Any) -> Line:
            part, at = failure or (None, None)
            return Line(text, holds, count, part, Place(*at) if at else None)

        nodes, lines, alternatives, evaluated, operators = found
        return cls(
            canonical,
            matches,
            reason,
            tuple(Place(*node) for node in nodes),
            tuple(line(*given) for given in lines),
            tuple(Alternative(tuple(p), tuple(n), *rest) for p, n, *rest in alternatives),
            tuple(Evaluated(text, value, Place(*at) if at else None) for text, value, at in evaluated),
            tuple(Operator(*given) for given in operators),
            instead,
        )

    def render(self, message: bytes) -> str:
        """Why the query matches or not, as text for its author; `message` is the explained one."""
        lines = self._verdict(message)
        failing = () if self.matches else (line for line in self.lines if line.failing is not None)
        for line in failing:
            if line.fails_at is None:
                lines.append(f"  {line.text}: no element for its first step")
            else:
                lines.append(f"  {line.text}: {line.failing} fails at {line.fails_at.text(message)}")
        return "\n".join(lines)

    def _verdict(self, message: bytes) -> list[str]:
        lines = [self.canonical, "matches" if self.matches else f"does not match: {self.reason}"]
        lines += [f"  selects {node.text(message)}" for node in self.nodes[:10]]
        if len(self.nodes) > 10:
            lines.append(f"  and {len(self.nodes) - 10} more")
        return lines

    def render_plan(self, message: bytes) -> str:
        """The same with all linear paths, alternatives and operators, for work on the planner."""
        lines = self._verdict(message)
        lines.append("paths:")
        for number, line in enumerate(self.lines):
            held = f"holds of {line.nodes}" if line.holds else "does not hold"
            lines.append(f"  {number}  {line.text}  {held}")
            if line.failing is not None:
                where = f" at {line.fails_at.text(message)}" if line.fails_at else ""
                lines.append(f"       {line.failing} fails{where}")
        lines.append("alternatives:")
        lines += [f"  {self._describe(alternative)}" for alternative in self.alternatives]
        if self.evaluated:
            lines.append("evaluated:")
        for part in self.evaluated:
            where = f"  at {part.at.text(message)}" if part.at else ""
            lines.append(f"  {part.text}  is {part.value}{where}")
        if self.operators:
            lines.append("operators:")
        for operator in self.operators:
            others = operator.shared - 1
            shared = f"shared with {others} other{'' if others == 1 else 's'}" if others else "not shared"
            lines.append(
                f"  {operator.kind:9}  {operator.text}: {operator.results}; {operator.note}; {shared}"
            )
        return "\n".join(lines)

    def _describe(self, alternative: Alternative) -> str:
        necessary = [str(line) for line in alternative.positive]
        necessary += [f"not {line}" for line in alternative.negative]
        parts = [", ".join(necessary) or "nothing necessary"]
        if alternative.indexed:
            access = "no line" if alternative.filed is None else f"line {alternative.filed}"
            parts.append(f"access test: {access}")
        parts.append("a candidate" if alternative.candidate else "no candidate")
        if alternative.candidate:
            parts.append("survives its tests" if alternative.survives else "fails a test")
            if alternative.survives and alternative.verified:
                why = self._why_verified(alternative)
                parts.append(f"verified on the document {why}")
        return "; ".join(parts)

    @staticmethod
    def _why_verified(alternative: Alternative) -> str:
        if alternative.inexact is not None:
            return f"because {alternative.inexact}"
        return "where a branching step binds several elements"
