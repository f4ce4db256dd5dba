"""Which attributes and values occur, and how often. Documents and queries of one profile fit each other."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any
from xml.parsers import expat

from tamis.model.dtd import Dtd

NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
"""XPath's number syntax, without white space."""

MOST_VALUES = 1_000
"""Distinct values kept per attribute, the most frequent first."""


@dataclass(frozen=True)
class Values:
    """The values of an attribute or element text, and the probability that it is present."""

    probability: float
    values: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """The values of attributes, by element and attribute, and of texts, by element. No others occur."""

    attributes: Mapping[str, Mapping[str, Values]]
    texts: Mapping[str, Values]

    @classmethod
    def drawn(cls, dtd: Dtd, *, seed: int | str, values: int = 20) -> "Profile":
        """Drawn at random, as seed 001 §4.4.2 does it.

        An attribute occurs with a probability between 0 and 1; it, or an element's text, takes between 1
        and `values` values, which are the numbers from 1 on. Values a DTD enumerates or fixes are kept.
        """
        random = Random(f"profile {seed}")
        attributes: dict[str, dict[str, Values]] = {}
        texts: dict[str, Values] = {}
        for name, element in dtd.elements.items():
            attributes[name] = {}
            for attribute, declared in element.attributes.items():
                probability = random.random()
                numbers = tuple(map(str, range(1, random.randint(1, values) + 1)))
                if declared.default == "required":
                    probability = 1.0
                if declared.default == "fixed" and declared.value is not None:
                    numbers = (declared.value,)
                attributes[name][attribute] = Values(probability, declared.values or numbers)
            numbers = tuple(map(str, range(1, random.randint(1, values) + 1)))
            if element.has_text:
                texts[name] = Values(1.0, numbers)
        return cls(attributes, texts)

    @classmethod
    def even(cls, dtd: Dtd, *, values: int) -> "Profile":
        """Without chance, as seed 001 §6.7.1 does it: MaxValue is `values`.

        Every attribute is there; it, and every element's text, takes all numbers from 1 to `values`.
        """
        numbers = tuple(map(str, range(1, values + 1)))
        everywhere = Values(1.0, numbers)
        attributes = {
            name: dict.fromkeys(element.attributes, everywhere) for name, element in dtd.elements.items()
        }
        texts = {name: everywhere for name, element in dtd.elements.items() if element.has_text}
        return cls(attributes, texts)

    @classmethod
    def observed(cls, documents: Iterable[bytes]) -> "Profile":
        """Counted in documents: what occurs there, in the form it has there."""
        sample = _Sample()
        for document in documents:
            sample.add(document)
        return sample.profile()


class _Sample:
    """Counts over documents. Text counts where it is an element's only text node and not blank."""

    def __init__(self) -> None:
        self.elements: Counter[str] = Counter()
        self.attributes: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.texts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, document: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        open_names: list[str] = []

        def start(name: str, attributes: dict[str, str]) -> None:
            open_names.append(name)
            self.elements[name] += 1
            for attribute, value in attributes.items():
                self.attributes[name, attribute][value] += 1

        def end(_: str) -> None:
            open_names.pop()

        def text(data: str) -> None:
            if data.strip():
                self.texts[open_names[-1]][data] += 1

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = text
        # Comments and instructions split text nodes; with a handler expat hands out what stands before.
        parser.CommentHandler = _ignore
        parser.ProcessingInstructionHandler = _ignore
        parser.Parse(document, True)

    def profile(self) -> Profile:
        attributes: dict[str, dict[str, Values]] = {name: {} for name in sorted(self.elements)}
        for (name, attribute), counts in sorted(self.attributes.items()):
            attributes[name][attribute] = Values(counts.total() / self.elements[name], _values(counts))
        texts = {
            name: Values(min(1.0, counts.total() / self.elements[name]), _values(counts))
            for name, counts in sorted(self.texts.items())
        }
        return Profile(attributes, texts)


def _ignore(*_: Any) -> None:
    pass


def _values(counts: Counter[str]) -> tuple[str, ...]:
    """The values in an order that does not depend on the order of the documents."""
    kept = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]
    return tuple(sorted((value for value, _ in kept), key=lambda value: (len(value), value)))
