"""Path queries that follow a DTD, by the workload parameters of seed 001, table 2."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tamis.model.dtd import Dtd
from tamis.model.progress import Report
from tamis.workload.draw import draw
from tamis.workload.literals import Literals, literals
from tamis.workload.paths import Step, Walker
from tamis.workload.profile import Profile
from tamis.workload.rules import Rules

INEQUALITIES = ("<", "<=", ">", ">=", "!=")


@dataclass(frozen=True)
class Mix:
    """The kinds of tests in predicates: weights of attributes, text and positions; then probabilities."""

    attribute: float = 0.75
    text: float = 0.2
    position: float = 0.05
    equality: float = 0.9
    """Of tests on numbers, how many are `=`; the rest are inequalities."""
    quoted: float = 0.5
    """Of equalities with numbers, how many compare strings: `[@a = "5"]`, not `[@a = 5]`."""


@dataclass(frozen=True)
class QueryOptions:
    """The parameters of table 2, by their letters there."""

    number: int = 1_000
    """Q"""
    depth: int = 6
    """D: the depth of paths, unless they reach a leaf before."""
    wildcard: float = 0.2
    """W: the probability of `*` at a step."""
    descendant: float = 0.2
    """DS: the probability of `//` before a step."""
    distinct: bool = True
    predicates: int = 0
    """P: per query, distributed over its steps."""
    nested: int = 0
    """NP: nested paths per query, of one level, distributed over its steps."""
    rules: int = 0
    """Conditions per query as in validation rules: functions, arithmetic, positions, other axes."""
    repeats: int = 3
    """RP: the largest position in a predicate."""
    mix: Mix = field(default_factory=Mix)
    roots: tuple[str, ...] = ()
    """First elements of paths; default: the DTD's roots."""


def generate_queries(
    dtd: Dtd, profile: Profile, options: QueryOptions, *, seed: int | str, progress: Report | None = None
) -> Iterator[str]:
    """Generate queries; equal seeds give equal queries."""
    generator = _Generator(dtd, profile, options, Random(f"queries {seed}"))
    return draw(generator.query, options.number, distinct=options.distinct, progress=progress)


class _Generator:
    """Builds a path and adds nested paths and tests to its steps."""

    def __init__(self, dtd: Dtd, profile: Profile, options: QueryOptions, random: Random) -> None:
        self.options = options
        self.random = random.random
        self.walker = Walker(dtd, random, wildcard=options.wildcard, descendant=options.descendant)
        self.roots = options.roots or dtd.roots
        self.repeated = {
            (name, child)
            for name, element in dtd.elements.items()
            for child, count in element.children.items()
            if count.max is None or count.max > 1
        }
        self.attributes = {
            name: tuple(literals(attributes).items()) for name, attributes in profile.attributes.items()
        }
        self.texts = literals(profile.texts)
        self.rules = Rules(
            self.walker, {name: [of for of, _ in found] for name, found in self.attributes.items()}
        )
        mix = options.mix
        total = mix.attribute + mix.text + mix.position
        self.attribute_share = mix.attribute / total
        self.text_share = (mix.attribute + mix.text) / total

    def query(self) -> str | None:
        """A query, or `None` if the walk has no room for all predicates."""
        options = self.options
        walk, steps = self.walker.path(self.roots, options.depth)
        for _ in range(options.nested):
            if not self.nest(walk, steps):
                return None
        for _ in range(options.predicates):
            if not self.test(walk, steps):
                return None
        for _ in range(options.rules):
            if not self.rules.add(walk, steps):
                return None
        return "".join(map(str, steps))

    def nest(self, walk: list[str], steps: list[Step]) -> bool:
        """Add a nested path to a step whose element may have children."""
        depth = self.options.depth
        eligible = [step for step in steps if step.at + 1 < depth and self.walker.children.get(walk[step.at])]
        if not eligible:
            return False
        step = eligible[int(self.random() * len(eligible))]
        _, nested = self.walker.path(self.walker.children[walk[step.at]], depth - step.at - 1)
        text = "".join(map(str, nested))
        step.predicates.append(f"[.{text}]" if text.startswith("//") else f"[{text[1:]}]")
        return True

    def test(self, walk: list[str], steps: list[Step]) -> bool:
        """Add a test to a step, of a kind that its element has."""
        kind = self.random()
        first = int(self.random() * len(steps))
        for offset in range(len(steps)):
            step = steps[(first + offset) % len(steps)]
            element = walk[step.at]
            if kind < self.attribute_share:
                attributes = self.attributes.get(element)
                if attributes:
                    name, literals = attributes[int(self.random() * len(attributes))]
                    step.predicates.append(f"[@{name} {self.comparison(literals)}]")
                    return True
            elif kind < self.text_share:
                text = self.texts.get(element)
                if text is not None:
                    step.predicates.append(f"[text() {self.comparison(text)}]")
                    return True
            elif step.at > 0 and (walk[step.at - 1], element) in self.repeated:
                step.predicates.append(f"[{1 + int(self.random() * self.options.repeats)}]")
                return True
        return False

    def comparison(self, literals: Literals) -> str:
        mix = self.options.mix
        if literals.numbers and self.random() >= mix.equality:
            return f"{self.walker.pick(INEQUALITIES)} {self.walker.pick(literals.numbers)}"
        quoted, number = literals.pairs[int(self.random() * len(literals.pairs))]
        if quoted is None or (number is not None and self.random() >= mix.quoted):
            return f"= {number}"
        return f"= {quoted}"
