"""Random paths down the element graph of a DTD."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tamis.model.dtd import Dtd


@dataclass(slots=True)
class Step:
    """A step of a path with its predicates."""

    axis: str
    test: str
    at: int
    """The position on the walk of the element that the step stands for."""
    predicates: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.axis}{self.test}{''.join(self.predicates)}"


class Walker:
    """Turns a random walk down the element graph into a path: names, `*`, and `//` that skips elements."""

    def __init__(self, dtd: Dtd, random: Random, *, wildcard: float = 0.0, descendant: float) -> None:
        self.random = random.random
        self.wildcard = wildcard
        self.descendant = descendant
        self.children = {name: tuple(element.children) for name, element in dtd.elements.items()}

    def path(self, first: Sequence[str], depth: int) -> tuple[list[str], list[Step]]:
        """A walk from one of `first` down to a leaf or `depth` levels, and steps along it."""
        random = self.random
        wildcard, descendant = self.wildcard, self.descendant
        walk: list[str] = []
        steps: list[Step] = []
        candidates = first
        axis = "/"
        while candidates and len(walk) < depth:
            walk.append(self.pick(candidates))
            candidates = self.children.get(walk[-1], ())
            if axis == "/" and random() < descendant:
                axis = "//"
            # The last step names the end of the walk. Before it, `//` may skip elements, each further one
            # with half the probability, and `*` may replace names.
            last = not candidates or len(walk) == depth
            if axis == "//" and not last and random() < 0.5:
                continue
            open_name = not last and random() < wildcard
            steps.append(Step(axis, "*" if open_name else walk[-1], len(walk) - 1))
            axis = "/"
        return walk, rewrite(steps)

    def pick(self, names: Sequence[str]) -> str:
        """A random name."""
        return names[int(self.random() * len(names))]


def rewrite(steps: list[Step]) -> list[Step]:
    """Remove redundant `//*` by the rules of seed 001 §4.4.2.

    `//*` becomes `/*//`, and of several in a row one is kept. (The third rule, for `//*` at the end of a
    path, has nothing to do: paths end with a name.)

    Before: `/a//*/b//*//*/c`. After: `/a/*//b/*//c`.
    """
    rewritten: list[Step] = []
    pending = False
    for step in steps:
        if pending:
            step.axis = "//"
        if step.axis == "//" and step.test == "*":
            if not pending:
                # The step now stands for the very next element of the walk.
                step.axis = "/"
                step.at = rewritten[-1].at + 1 if rewritten else 0
                rewritten.append(step)
            pending = True
        else:
            rewritten.append(step)
            pending = False
    return rewritten
