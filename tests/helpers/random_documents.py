"""Random documents: small, recursive, with many corner cases of XPath.

The same few names and values occur everywhere, so that a random query has a fair chance
either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from xml.sax.saxutils import escape

NAMESPACES = {"p": "urn:p", "q": "urn:q"}
"""The prefixes of random queries; documents bind random prefixes to the same URIs."""

XML = "http://www.w3.org/XML/1998/namespace"

LOCALS = ("a", "b", "c", "d")
ATTRIBUTES = ("x", "y", "z")

# No '1e3', '+1' or 'inf': libxml2 takes them for numbers, XPath 1.0 does not.
VALUES = ("1", "2", "3", "10", "11", "011", " 11.0 ", "-3", "2.5", ".5", "7.", "", " ", "x", "xy", "yx",
          "abc", "a b", "it's", 'say "x"', "1 2", "NaN", "é", "<&>", "\n2\n")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Name:
    """An expanded name."""

    uri: str
    local: str


@dataclass(slots=True)
class Element:
    """An element; its children are elements, text (`str`) and other mark-up (`Markup`)."""

    name: Name
    parent: Element | None
    attributes: dict[Name, str] = field(default_factory=dict)
    children: list[Element | str | Markup] = field(default_factory=list)

    def elements(self) -> list[Element]:
        return [child for child in self.children if isinstance(child, Element)]

    def texts(self) -> list[str]:
        return [child for child in self.children if isinstance(child, str)]

    def descendants(self) -> Iterator[Element]:
        """All elements below this one, in document order."""
        for child in self.elements():
            yield child
            yield from child.descendants()

    def string_value(self) -> str:
        return "".join(
            child if isinstance(child, str) else child.string_value()
            for child in self.children
            if not isinstance(child, Markup)
        )

    def ancestry(self) -> list[Element]:
        """From the root element down to this one."""
        return [*(self.parent.ancestry() if self.parent else []), self]


@dataclass(frozen=True, slots=True)
class Markup:
    """A comment or processing instruction, as it is written: it splits text."""

    source: str


MARKUP = (Markup("<!--a-->"), Markup("<!---->"), Markup("<?a 1?>"), Markup("<?x?>"))


def document(random: Random) -> Element:
    """One random document, as its root element."""
    # A document keeps to few names, so that names recur below themselves.
    locals_ = random.sample(LOCALS, random.randint(2, len(LOCALS)))
    uris = random.choice((("",), ("",), ("", "urn:p"), ("", "urn:p", "urn:q")))
    budget = random.randint(4, 24)
    root = _element(random, None, locals_, uris)
    grown = [root]
    for _ in range(budget):
        # Latest first half of the time: documents get deep as well as broad.
        parent = grown[-1] if random.random() < 0.5 else random.choice(grown)
        if len(parent.ancestry()) < 9:
            child = _element(random, parent, locals_, uris)
            parent.children.append(child)
            grown.append(child)
    for element in grown:
        _mix(random, element)
    return root


def variant(random: Random, original: Element, parent: Element | None = None) -> Element:
    """A copy with a few changes: what holds for one document then holds for some of the others."""
    name = original.name
    if random.random() < 0.05:
        name = Name(name.uri, random.choice(LOCALS))
    copy = Element(name, parent)
    for attribute, value in original.attributes.items():
        if random.random() < 0.92:
            copy.attributes[attribute] = value if random.random() < 0.85 else random.choice(VALUES)
    for child in original.children:
        if random.random() < 0.05:
            continue
        if isinstance(child, Element):
            copy.children.append(variant(random, child, copy))
        elif isinstance(child, Markup):
            copy.children.append(child)
        else:
            text = child if random.random() < 0.85 else random.choice(VALUES)
            if text and not (copy.children and isinstance(copy.children[-1], str)):
                copy.children.append(text)
    return copy


def _element(random: Random, parent: Element | None, locals_: list[str], uris: tuple[str, ...]) -> Element:
    element = Element(Name(random.choice(uris), random.choice(locals_)), parent)
    for local in random.sample(ATTRIBUTES, random.choice((0, 0, 1, 1, 2, 3))):
        element.attributes[Name("", local)] = random.choice(VALUES)
    if random.random() < 0.15:
        element.attributes[Name("urn:p", random.choice(ATTRIBUTES))] = random.choice(VALUES)
    if random.random() < 0.08:
        element.attributes[Name(XML, "lang")] = random.choice(("en", "fr", "x"))
    return element


def _mix(random: Random, element: Element) -> None:
    """Put text, comments and processing instructions between an element's children."""
    mixed: list[Element | str | Markup] = []
    for child in [*element.children, None]:
        for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
            if random.random() < 0.3:
                mixed.append(random.choice(MARKUP))
            elif not (mixed and isinstance(mixed[-1], str)) and (text := random.choice(VALUES)):
                mixed.append(text)
        if child is not None:
            mixed.append(child)
    element.children = mixed


def serialise(random: Random, root: Element) -> bytes:
    """The document as bytes; how names and text are spelled is random."""
    before = random.choice(("", '<?xml version="1.0"?>\n', "<!-- a -->", "<?a b?>\n"))
    after = random.choice(("", "\n", "<!--z-->"))
    if after == "<!--z-->" and not before.startswith(("<!--", "<?a")):
        # libxml2 leaves out a root element that nothing stands before on `preceding` (docs/language.md).
        before += "<!-- a -->"
    parts = [before]
    _write(random, root, {"": ""}, parts)
    parts.append(after)
    return "".join(parts).encode()


def _write(random: Random, element: Element, scope: dict[str, str], parts: list[str]) -> None:
    """Append one element; `scope` binds prefixes to URIs, the default namespace under ''."""
    scope = dict(scope)
    declared: list[str] = []

    def spell(name: Name, attribute: bool) -> str:
        if name.uri == XML:
            return f"xml:{name.local}"
        if attribute and not name.uri:
            return name.local
        usable = [prefix for prefix, uri in scope.items() if uri == name.uri and (prefix or not attribute)]
        if usable:
            prefix = random.choice(usable)
        else:
            # A default namespace is declared at most once per element, and before its attributes.
            prefix = (
                "" if not name.uri or (not attribute and random.random() < 0.5) else random.choice("pqrs")
            )
            while f"xmlns:{prefix}" in declared or (prefix and attribute and prefix in used):
                prefix = random.choice("pqrstuv")
            declared.append(f"xmlns:{prefix}" if prefix else "xmlns")
            scope[prefix] = name.uri
        used.add(prefix)
        return f"{prefix}:{name.local}" if prefix else name.local

    used: set[str] = set()
    tag = spell(element.name, attribute=False)
    attributes = [(spell(name, attribute=True), value) for name, value in element.attributes.items()]
    attributes += [(declaration, scope[declaration[6:]]) for declaration in declared]
    random.shuffle(attributes)
    parts.append(f"<{tag}")
    for name, value in attributes:
        quote = random.choice("'\"")
        # A line end in an attribute value would be normalised to a space: keep it as a reference.
        written = escape(value, {quote: "&#34;" if quote == '"' else "&apos;", "\n": "&#10;"})
        parts.append(f"{random.choice((' ', '  ', chr(10)))}{name}={quote}{written}{quote}")
    if not element.children and random.random() < 0.7:
        parts.append("/>")
        return
    parts.append(">")
    for child in element.children:
        if isinstance(child, Element):
            _write(random, child, scope, parts)
        elif isinstance(child, Markup):
            parts.append(child.source)
        else:
            parts.append(_text(random, child))
    parts.append(f"</{tag}>")


def _text(random: Random, text: str) -> str:
    """Spell a text node: plain, as CDATA, with character references, or half and half."""
    way = random.random()
    if way < 0.6:
        return escape(text)
    if way < 0.75:
        return f"<![CDATA[{text}]]>"
    if way < 0.85:
        return "".join(f"&#{ord(c)};" if random.random() < 0.5 else escape(c) for c in text)
    middle = random.randint(0, len(text))
    return f"{escape(text[:middle])}<![CDATA[{text[middle:]}]]>"
