"""Conditions as in validation rules, which no index can look up: functions, arithmetic, positions, axes."""

from collections.abc import Callable, Mapping, Sequence

from tamis.workload.paths import Step, Walker

TRIES = 8
"""Attempts per condition: not every kind can be said of every element."""


class Rules:
    """Writes conditions for the elements of a walk down a DTD."""

    def __init__(self, walker: Walker, attributes: Mapping[str, Sequence[str]]) -> None:
        """`attributes`: the names of those that occur, by element."""
        self.walker = walker
        self.attributes = attributes
        self.kinds: tuple[Callable[[list[str], Step], str | None], ...] = (
            self.count,
            self.normalized,
            self.length,
            self.part,
            self.arithmetic,
            self.position,
            self.reverse,
            self.pattern,
            self.quantified,
        )

    def add(self, walk: list[str], steps: list[Step]) -> bool:
        """Add a condition to a step; false if no kind suits the steps that were tried."""
        for _ in range(TRIES):
            step = steps[self.below(len(steps))]
            condition = self.kinds[self.below(len(self.kinds))](walk, step)
            if condition is not None:
                step.predicates.append(f"[{condition}]")
                return True
        return False

    def below(self, end: int) -> int:
        """A random number from 0 on."""
        return int(self.walker.random() * end)

    def child(self, walk: list[str], step: Step) -> str | None:
        """A child that the element of the step may have."""
        children = self.walker.children.get(walk[step.at])
        return self.walker.pick(children) if children else None

    def attribute(self, walk: list[str], step: Step) -> str | None:
        """An attribute that the element of the step may have."""
        names = self.attributes.get(walk[step.at])
        return f"@{self.walker.pick(names)}" if names else None

    def count(self, walk: list[str], step: Step) -> str | None:
        child = self.child(walk, step)
        return child and f"count({child}) {self.walker.pick(('<', '<=', '!='))} {2 + self.below(3)}"

    def normalized(self, walk: list[str], step: Step) -> str | None:
        value = self.attribute(walk, step) or "."
        return f"normalize-space({value}) != ''"

    def length(self, walk: list[str], step: Step) -> str | None:
        value = self.attribute(walk, step) or "."
        return f"string-length({value}) > {self.below(4)}"

    def part(self, walk: list[str], step: Step) -> str | None:
        value = self.attribute(walk, step) or "."
        return f"substring({value}, {1 + self.below(2)}, {1 + self.below(3)}) != '{self.below(10)}'"

    def arithmetic(self, walk: list[str], step: Step) -> str | None:
        child = self.child(walk, step)
        return child and f"count({child}) * {1 + self.below(3)} + {1 + self.below(3)} < {8 + self.below(8)}"

    def position(self, walk: list[str], step: Step) -> str | None:
        return self.walker.pick(
            (f"last() < {3 + self.below(5)}", f"position() < last() + {1 + self.below(3)}")
        )

    def reverse(self, walk: list[str], step: Step) -> str | None:
        if step.at == 0:
            return None
        kind = self.below(3)
        if kind == 0:
            return f"ancestor::{walk[self.below(step.at)]}"
        if kind == 1:
            return f"../../{walk[step.at - 1]}" if step.at > 1 else None
        return f"count(preceding-sibling::*) < {2 + self.below(6)}"

    def pattern(self, walk: list[str], step: Step) -> str | None:
        value = self.attribute(walk, step) or "."
        return f"matches({value}, '{self.walker.pick(('[a-z]', '[A-Za-z0-9]+', '^.{0,40}$', '[^ ]'))}')"

    def quantified(self, walk: list[str], step: Step) -> str | None:
        child = self.child(walk, step)
        return child and f"some $x in {child} satisfies string-length($x) > {self.below(3)}"
