"""Documents that follow a DTD's content models, with the attributes and values of a profile."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from xml.sax.saxutils import escape, quoteattr

from tamis.model.dtd import Dtd, Element, Particle
from tamis.model.progress import Report
from tamis.workload.error import WorkloadError
from tamis.workload.profile import Profile


@dataclass(frozen=True)
class DocumentOptions:
    """The parameters of seed 001, table 2, that concern documents."""

    number: int = 200
    depth: int = 6
    """D: below this depth, only elements that a content model requires."""
    repeats: int = 3
    """RP: the largest number of repetitions under one parent, unless a content model requires more."""
    repeats_of: Mapping[str, int] = field(default_factory=dict)
    """Overrides of `repeats` by element."""
    roots: tuple[str, ...] = ()
    """Root elements; default: the DTD's roots."""


def generate_documents(
    dtd: Dtd, profile: Profile, options: DocumentOptions, *, seed: int | str, progress: Report | None = None
) -> Iterator[bytes]:
    """Generate documents; equal seeds give equal documents."""
    generator = _Generator(dtd, profile, options, Random(f"documents {seed}"))
    for count in range(1, options.number + 1):
        yield generator.document()
        if progress is not None:
            progress(count, options.number)


class _Generator:
    def __init__(self, dtd: Dtd, profile: Profile, options: DocumentOptions, random: Random) -> None:
        self.dtd = dtd
        self.profile = profile
        self.options = options
        self.random = random
        self.roots = options.roots or dtd.roots
        self.height = _heights(dtd)

    def document(self) -> bytes:
        out: list[str] = []
        self.element(out, self.random.choice(self.roots), 1)
        return "".join(out).encode()

    def element(self, out: list[str], name: str, depth: int) -> None:
        out.append(f"<{name}")
        for attribute, values in self.profile.attributes.get(name, {}).items():
            if self.random.random() < values.probability:
                out.append(f" {attribute}={quoteattr(self.random.choice(values.values))}")
        out.append(">")
        element = self.dtd.elements.get(name)
        if element is not None:
            text = self.profile.texts.get(name)
            if text is not None and element.has_text and self.random.random() < text.probability:
                out.append(escape(self.random.choice(text.values)))
            for child in self.children(element, depth):
                self.element(out, child, depth + 1)
        out.append(f"</{name}>\n")

    def children(self, element: Element, depth: int) -> list[str]:
        names: list[str] = []
        if element.model is not None:
            self.expand(element.model, names, Counter(), depth >= self.options.depth)
        elif element.content == "any" and depth < self.options.depth:
            count = self.random.randint(0, self.options.repeats)
            names = self.random.choices(tuple(self.dtd.elements), k=count)
        return names

    def repeats(self, name: str) -> int:
        return self.options.repeats_of.get(name, self.options.repeats)

    def expand(self, particle: Particle, names: list[str], counts: Counter[str], least: bool) -> None:
        """Append a random expansion of a particle, or with `least` the smallest one."""
        repeats = self.repeats(particle.name)
        at_least, at_most = {"": (1, 1), "?": (0, 1), "*": (0, repeats), "+": (1, repeats)}[
            particle.occurrence
        ]
        times = at_least if least else self.random.randint(at_least, max(at_least, at_most))
        for time in range(times):
            if particle.kind == "name":
                if time >= at_least and counts[particle.name] >= repeats:
                    return
                counts[particle.name] += 1
                names.append(particle.name)
            elif particle.kind == "seq":
                for part in particle.parts:
                    self.expand(part, names, counts, least)
            elif particle.parts:
                self.choose(particle.parts, names, counts, least, demanded=time < at_least)

    def choose(
        self,
        parts: tuple[Particle, ...],
        names: list[str],
        counts: Counter[str],
        least: bool,
        *,
        demanded: bool,
    ) -> None:
        if least:
            self.expand(min(parts, key=self.height_of), names, counts, least)
            return
        part = self.random.choice(parts)
        if demanded or part.kind != "name" or counts[part.name] < self.repeats(part.name):
            self.expand(part, names, counts, least)

    def height_of(self, particle: Particle) -> float:
        return _height_of(particle, self.height)


def _heights(dtd: Dtd) -> dict[str, float]:
    """The smallest height of each element; infinite if the DTD admits no finite document."""
    heights = dict.fromkeys(dtd.elements, float("inf"))
    changed = True
    while changed:
        changed = False
        for name, element in dtd.elements.items():
            height = 1 + (_height_of(element.model, heights) if element.model is not None else 0)
            if height < heights[name]:
                heights[name] = height
                changed = True
    endless = sorted(name for name, height in heights.items() if height == float("inf"))
    if endless:
        raise WorkloadError(
            "endless-element",
            f"no document can hold these elements, which demand themselves: {', '.join(endless)}",
        )
    return heights


def _height_of(particle: Particle, heights: dict[str, float]) -> float:
    if particle.occurrence in ("?", "*"):
        return 0
    if particle.kind == "name":
        return heights.get(particle.name, 1)
    parts = [_height_of(part, heights) for part in particle.parts]
    return (min if particle.kind == "choice" else max)(parts, default=0)
