"""Transformations that follow a DTD, by the workload parameters of seed 001, table 7."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from tamis.model.dtd import Dtd
from tamis.model.progress import Report
from tamis.workload.draw import draw
from tamis.workload.literals import Literals, literals
from tamis.workload.paths import Walker
from tamis.workload.profile import Profile

TRIES = 20
"""Attempts per path before giving up: the bound element has too few paths below."""


@dataclass(frozen=True)
class TransformationOptions:
    """The parameters of table 7, by their letters there; its MaxValue is the profile's."""

    number: int = 1_000
    """Q"""
    binding_depth: int = 2
    """D1: the depth of binding paths, unless they reach a leaf before."""
    predicates: int = 1
    """PP: predicate paths per transformation, each compared with a value that occurs."""
    returns: int = 2
    """RP: return paths per transformation."""
    depth: int = 2
    """D2: the largest depth of predicate and return paths below the bound element."""
    descendant: float = 0.2
    """DSProb: the probability of `//` before a step."""
    ordered: bool = False
    """Whether a second variable is bound below the first, and the results are ordered by it."""
    roots: tuple[str, ...] = ()
    """First elements of binding paths; default: the DTD's roots."""


def generate_transformations(
    dtd: Dtd,
    profile: Profile,
    options: TransformationOptions,
    *,
    seed: int | str,
    progress: Report | None = None,
) -> Iterator[str]:
    """Generate distinct transformations, ignoring the order of parts; equal seeds give equal output."""
    generator = _Generator(dtd, profile, options, Random(f"transformations {seed}"))
    return draw(generator.transformation, options.number, progress=progress)


class _Generator:
    """Builds a walk to the bound element, and walks from there."""

    def __init__(self, dtd: Dtd, profile: Profile, options: TransformationOptions, random: Random) -> None:
        self.options = options
        self.random = random.random
        self.walker = Walker(dtd, random, descendant=options.descendant)
        self.roots = options.roots or dtd.roots
        self.tests = _tests(dtd, profile)

    def transformation(self) -> str | None:
        """A transformation, or `None` if the bound element has too few paths below."""
        walk, steps = self.walker.path(self.roots, self.options.binding_depth)
        below = self.walker.children.get(walk[-1], ())
        if not below:
            return None
        conditions = self.several(self.options.predicates, lambda: self.condition(below))
        returns = self.several(self.options.returns, lambda: self.path(below)[0])
        if conditions is None or returns is None:
            return None
        binding, order = f"for $v in {''.join(map(str, steps))}", ""
        where = f" where {' and '.join(conditions)}" if conditions else ""
        template = "".join(f"{{ {path} }}" for path in returns)
        if self.options.ordered:
            binding += f", $w in {self.path(below)[0]}"
            order = f" order by $w {self.walker.pick(('ascending', 'descending'))}"
            template += "{ $w }"
        return f"{binding}{where}{order} return <result>{template}</result>"

    def several(self, count: int, make: Callable[[], str | None]) -> list[str] | None:
        """`count` different items, sorted, so that order does not make them distinct."""
        found: set[str] = set()
        for _ in range(TRIES * count):
            if len(found) == count:
                break
            item = make()
            if item is not None:
                found.add(item)
        return sorted(found) if len(found) == count else None

    def condition(self, below: tuple[str, ...]) -> str | None:
        path, end = self.path(below)
        tests = self.tests[end]
        if not tests:
            return None
        leaf, values = tests[int(self.random() * len(tests))]
        quoted, number = values.pairs[int(self.random() * len(values.pairs))]
        return f"{path}{leaf} = {number if quoted is None else quoted}"

    def path(self, below: tuple[str, ...]) -> tuple[str, str]:
        """A path from the bound element, and its last element."""
        walk, steps = self.walker.path(below, 1 + int(self.random() * self.options.depth))
        return f"$v{''.join(map(str, steps))}", walk[-1]


def _tests(dtd: Dtd, profile: Profile) -> dict[str, list[tuple[str, Literals]]]:
    """By element, what can be compared: its text and its attributes."""
    texts = literals(profile.texts)
    tests: dict[str, list[tuple[str, Literals]]] = {}
    for name, element in dtd.elements.items():
        attributes = literals(profile.attributes.get(name, {}))
        tests[name] = [(f"/@{attribute}", values) for attribute, values in attributes.items()]
        if element.has_text and name in texts:
            # `text()` if the string-value would include that of child elements.
            tests[name].append(("/text()" if element.children else "", texts[name]))
    return tests
