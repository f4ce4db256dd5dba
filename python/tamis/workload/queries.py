"""Path queries that follow a DTD, by the workload parameters of seed 001, table 2."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tamis.dtd import Dtd
from tamis.progress import Report
from tamis.workload.error import WorkloadError
from tamis.workload.profile import NUMBER, Profile, Values

INEQUALITIES = ("<", "<=", ">", ">=", "!=")

PATIENCE = 100_000
"""So many failures in a row mean that there are no more distinct queries."""


@dataclass(frozen=True)
class Mix:
    """What the predicates test: weights of attributes, text and positions; then probabilities."""

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
    """D: how far down paths go, unless they come to a leaf before."""
    wildcard: float = 0.2
    """W: the probability of `*` at a step."""
    descendant: float = 0.2
    """DS: the probability of `//` before a step."""
    distinct: bool = True
    predicates: int = 0
    """P: per query, distributed over its steps."""
    nested: int = 0
    """NP: nested paths per query, of one level, distributed over its steps."""
    repeats: int = 3
    """RP: the highest position asked for."""
    mix: Mix = field(default_factory=Mix)
    roots: tuple[str, ...] = ()
    """Where paths begin; the DTD's roots unless given."""


def generate_queries(
    dtd: Dtd, profile: Profile, options: QueryOptions, *, seed: int | str, progress: Report | None = None
) -> Iterator[str]:
    """The same queries for the same seed."""
    generator = _Generator(dtd, profile, options, Random(f"queries {seed}"))
    seen: set[str] = set()
    made = failures = 0
    while made < options.number:
        query = generator.query()
        if query is None or (options.distinct and query in seen):
            failures += 1
            if failures == PATIENCE:
                raise WorkloadError(
                    "too-few-queries",
                    f"this DTD and these parameters give no more than about {made} such queries",
                )
            continue
        failures = 0
        made += 1
        if options.distinct:
            seen.add(query)
        if progress is not None and made % 1_000 == 0:
            progress(made, options.number)
        yield query
    if progress is not None:
        progress(made, options.number)


@dataclass(slots=True)
class _Step:
    axis: str
    test: str
    at: int
    """Where on the walk the element stands that the step is meant for."""
    predicates: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.axis}{self.test}{''.join(self.predicates)}"


class _Generator:
    """One walk down the DTD's element graph makes one path; steps name it, skip it or leave it open."""

    def __init__(self, dtd: Dtd, profile: Profile, options: QueryOptions, random: Random) -> None:
        self.options = options
        self.random = random.random
        self.roots = options.roots or dtd.roots
        self.children = {name: tuple(element.children) for name, element in dtd.elements.items()}
        self.repeated = {
            (name, child)
            for name, element in dtd.elements.items()
            for child, count in element.children.items()
            if count.max is None or count.max > 1
        }
        self.attributes = {
            name: tuple(_literals(attributes).items()) for name, attributes in profile.attributes.items()
        }
        self.texts = _literals(profile.texts)
        mix = options.mix
        total = mix.attribute + mix.text + mix.position
        self.attribute_share = mix.attribute / total
        self.text_share = (mix.attribute + mix.text) / total

    def query(self) -> str | None:
        """A query, or `None` where the walk has no place for all the predicates asked for."""
        options = self.options
        walk, steps = self.path(self.roots, options.depth)
        for _ in range(options.nested):
            if not self.nest(walk, steps):
                return None
        for _ in range(options.predicates):
            if not self.test(walk, steps):
                return None
        return "".join(map(str, steps))

    def path(self, first: Sequence[str], depth: int) -> tuple[list[str], list[_Step]]:
        """A walk from one of `first` down to a leaf or `depth` levels, and steps along it."""
        random = self.random
        wildcard, descendant = self.options.wildcard, self.options.descendant
        walk: list[str] = []
        steps: list[_Step] = []
        candidates = first
        axis = "/"
        while candidates and len(walk) < depth:
            walk.append(self.pick(candidates))
            candidates = self.children.get(walk[-1], ())
            if axis == "/" and random() < descendant:
                axis = "//"
            # A path ends with the name its walk ends at. Before that, `//` may pass over elements, each
            # more half as likely, and `*` may stand for them.
            last = not candidates or len(walk) == depth
            if axis == "//" and not last and random() < 0.5:
                continue
            open_name = not last and random() < wildcard
            steps.append(_Step(axis, "*" if open_name else walk[-1], len(walk) - 1))
            axis = "/"
        return walk, _rewrite(steps)

    def pick(self, names: Sequence[str]) -> str:
        return names[int(self.random() * len(names))]

    def nest(self, walk: list[str], steps: list[_Step]) -> bool:
        """Hang a nested path on a step that may have children and leaves room for some."""
        depth = self.options.depth
        eligible = [step for step in steps if step.at + 1 < depth and self.children.get(walk[step.at])]
        if not eligible:
            return False
        step = eligible[int(self.random() * len(eligible))]
        _, nested = self.path(self.children[walk[step.at]], depth - step.at - 1)
        text = "".join(map(str, nested))
        step.predicates.append(f"[.{text}]" if text.startswith("//") else f"[{text[1:]}]")
        return True

    def test(self, walk: list[str], steps: list[_Step]) -> bool:
        """Hang a test on a step, of a kind its element has."""
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

    def comparison(self, literals: "_Literals") -> str:
        mix = self.options.mix
        if literals.numbers and self.random() >= mix.equality:
            return f"{self.pick(INEQUALITIES)} {self.pick(literals.numbers)}"
        quoted, number = literals.pairs[int(self.random() * len(literals.pairs))]
        if quoted is None or (number is not None and self.random() >= mix.quoted):
            return f"= {number}"
        return f"= {quoted}"


class _Literals:
    """Values as literals of XPath: quoted, if they go on one line; and bare, if they are numbers."""

    def __init__(self, values: Sequence[str]) -> None:
        self.pairs: list[tuple[str | None, str | None]] = []
        for value in values:
            quoted = number = None
            if value.isprintable() and not ('"' in value and "'" in value):
                quoted = f"'{value}'" if '"' in value else f'"{value}"'
            if NUMBER.fullmatch(value.strip()):
                number = value.strip()
            if quoted is not None or number is not None:
                self.pairs.append((quoted, number))
        self.numbers = [number for _, number in self.pairs if number is not None]


def _literals(values: Mapping[str, Values]) -> dict[str, _Literals]:
    """By name, those of which there are any."""
    literals = {name: _Literals(found.values) for name, found in values.items()}
    return {name: found for name, found in literals.items() if found.pairs}


def _rewrite(steps: list[_Step]) -> list[_Step]:
    """Take out the redundancy of `//*`, by the rules of seed 001 §4.4.2.

    `//*` becomes `/*//`, and of several in a row one is kept. (The third rule, for `//*` at the end of a
    path, has nothing to do: paths end with a name.)

    Before: `/a//*/b//*//*/c`. After: `/a/*//b/*//c`.
    """
    rewritten: list[_Step] = []
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
