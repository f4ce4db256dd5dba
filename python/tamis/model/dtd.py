"""The element declarations of a DTD: `tamis.read_dtd` builds them, generators and planners use them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Content = Literal["empty", "any", "mixed", "children"]
Default = Literal["required", "implied", "fixed", "value"]
Occurrence = Literal["", "?", "*", "+"]


@dataclass(frozen=True)
class Particle:
    """A part of a content model: a `name`, or a `seq` or `choice` of parts."""

    kind: Literal["seq", "choice", "name"]
    occurrence: Occurrence
    name: str = ""
    parts: tuple["Particle", ...] = ()

    @classmethod
    def of(cls, model: Any) -> "Particle":
        """From `(kind, occurrence, parts or name)`."""
        kind, occurrence, rest = model
        if kind == "name":
            return cls(kind, occurrence, name=rest)
        return cls(kind, occurrence, parts=tuple(cls.of(part) for part in rest))


@dataclass(frozen=True)
class Cardinality:
    """How often a child occurs under one parent; no `max` is "without bound"."""

    min: int
    max: int | None


@dataclass(frozen=True)
class Attribute:
    """An attribute's declaration. `values` are those of an enumeration; `value` is the default."""

    type: str
    values: tuple[str, ...]
    default: Default
    value: str | None


@dataclass(frozen=True)
class Element:
    """An element's declaration."""

    content: Content
    model: Particle | None
    children: Mapping[str, Cardinality]
    attributes: Mapping[str, Attribute]

    @property
    def has_text(self) -> bool:
        """Whether text may stand in it."""
        return self.content in ("mixed", "any")


@dataclass(frozen=True)
class Dtd:
    """The elements of a DTD by name, and those a document may begin with."""

    elements: Mapping[str, Element]
    roots: tuple[str, ...] = field(default=())

    @classmethod
    def from_json(cls, text: str) -> "Dtd":
        """From what the kernel writes (`Dtd::to_json`)."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Dtd":
        """From plain dictionaries; without `roots`, the elements that are no element's child."""
        elements = {
            name: Element(
                content=entry["content"],
                model=None if entry.get("model") is None else Particle.of(entry["model"]),
                children={child: Cardinality(*count) for child, count in entry.get("children", {}).items()},
                attributes={
                    attribute: Attribute(
                        declared["type"], tuple(declared["values"]), declared["default"], declared["value"]
                    )
                    for attribute, declared in entry.get("attributes", {}).items()
                },
            )
            for name, entry in plain["elements"].items()
        }
        roots = plain.get("roots")
        if roots is None:
            below = {child for entry in elements.values() for child in entry.children}
            roots = [name for name in elements if name not in below] or list(elements)
        return cls(elements, tuple(roots))
