"""Random queries over the whole filter language, biased towards what a document contains.

A query is grown around a *witness*, an element of some document: its paths lead there, its tests
compare values found there, and now and then something is changed so that it fails. Each query
knows which productions of the grammar it uses, so that a run can count what it covered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from tests.helpers.literals import number_of, quote
from tests.helpers.random_documents import ATTRIBUTES, LOCALS, NAMESPACES, VALUES, XML, Element, Name

PRODUCTIONS = (
    # steps
    "child", "descendant", "attribute", "descendant-attribute", "text", "descendant-text",
    "name", "any", "any-attribute", "prefixed", "prefixed-any", "any-prefix", "prefixed-attribute",
    "any-prefix-attribute", "xml-attribute",
    "child::", "descendant::", "attribute::", "self::", "descendant-or-self::", "dot-step",
    # names in predicates
    "local-name()", "namespace-uri()", "name()", "self::name", "@local-name()", "one of two names",
    # how a path begins
    "absolute", "relative", "doc-variable", "msg-variable",
    "dot", "dot-child", "dot-descendant", "absolute-in-predicate",
    # predicates
    "exists-attribute", "exists-path", "compare-attribute", "compare-text", "compare-dot", "compare-path",
    "position", "position-never", "position-after-filter", "filter-after-position",
    "several-predicates", "nested-predicate", "predicate-on-attribute", "predicate-on-text",
    "union-in-predicate", "union-compared", "constant",
    # tests
    "=", "!=", "<", "<=", ">", ">=", "swapped", "string", "number", "negative", "ordered-string",
    "contains", "starts-with",
    # booleans
    "and", "or", "not", "parentheses",
    # top level
    "top-path", "top-compare", "top-function", "top-and", "top-or", "top-not", "top-union",
)  # fmt: skip

NAMES_IN_PREDICATES = ("local-name()", "namespace-uri()", "name()", "self::name", "one of two names")

_PREFIX = {uri: prefix for prefix, uri in NAMESPACES.items()} | {XML: "xml"}
_SWAP = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class RandomQuery:
    """A query, its spelling for the oracle, and the productions it uses."""

    text: str
    oracle: str
    """As lxml must be asked: every top-level path absolute, no `$doc`."""
    productions: frozenset[str]


def query(random: Random, witness: Element, production: str) -> RandomQuery:
    """One query that uses `production`."""
    for _ in range(2000):
        made = Grower(random, production).query(witness)
        if production in made.productions:
            return made
    raise AssertionError(f"no query with {production!r} was made")


def without_any_prefix(query: str) -> str:
    """The query in XPath 1.0, which has no `*:name`."""
    return re.sub(r"\*:([\w.-]+)", r"*[local-name()='\1']", query)


class Grower:
    """Grows one query. `favoured` is a production that is chosen wherever it can be."""

    def __init__(self, random: Random, favoured: str) -> None:
        self.random = random
        self.favoured = favoured
        self.used: set[str] = set()

    def query(self, witness: Element) -> RandomQuery:
        text, oracle = self.top(witness, 0)
        return RandomQuery(text, without_any_prefix(oracle), frozenset(self.used))

    def chance(self, probability: float, *productions: str) -> bool:
        """A random choice, more probable if it leads to the favoured production."""
        if self.favoured in productions:
            probability = max(probability, 0.7)
        return self.random.random() < probability

    def use(self, production: str) -> None:
        self.used.add(production)

    # ── top level ────────────────────────────────────────────────────────────────────────────

    def top(self, witness: Element, depth: int) -> tuple[str, str]:
        """A filter, twice: as tamis is asked and as the oracle is asked."""
        if depth < 2:
            if self.chance(0.12, "top-and"):
                return self.top_boolean(witness, depth, "and")
            if self.chance(0.10, "top-or"):
                return self.top_boolean(witness, depth, "or")
            if self.chance(0.06, "top-not"):
                self.use("top-not")
                text, oracle = self.top(witness, depth + 1)
                return f"not({text})", f"not({oracle})"
            if depth == 0 and self.chance(0.05, "top-union"):
                self.use("top-union")
                left, right = self.top_path(witness), self.top_path(self.elsewhere(witness))
                return f"{left[0]} | {right[0]}", f"{left[1]} | {right[1]}"
        if self.chance(0.12, "top-compare"):
            self.use("top-compare")
            path, value = self.valued_top_path(witness)
            operator, literal = self.comparison(value)
            return tuple(self.compared(p, operator, literal) for p in path)  # type: ignore[return-value]
        if self.chance(0.05, "top-function"):
            self.use("top-function")
            path, value = self.valued_top_path(witness)
            call = self.function(value)
            return call.format(path[0]), call.format(path[1])
        self.use("top-path")
        return self.top_path(witness)

    def top_boolean(self, witness: Element, depth: int, word: str) -> tuple[str, str]:
        self.use(f"top-{word}")
        operands = [self.top(witness, depth + 1)]
        operands += [
            self.top(self.elsewhere(witness), depth + 1) for _ in range(self.random.choice((1, 1, 2)))
        ]
        operands = [self.grouped(*operand) for operand in operands]
        return f" {word} ".join(t for t, _ in operands), f" {word} ".join(o for _, o in operands)

    def grouped(self, text: str, oracle: str) -> tuple[str, str]:
        """Parentheses where precedence asks for them, and sometimes where it does not."""
        if " and " in text or " or " in text or self.chance(0.1, "parentheses"):
            self.use("parentheses")
            return f"({text})", f"({oracle})"
        return text, oracle

    def top_path(self, witness: Element) -> tuple[str, str]:
        path = self.path_to(witness)
        if self.chance(0.12, "attribute", "descendant-attribute", "text", "descendant-text", "any-attribute"):
            path += self.leaf(witness)[0]
        return self.lead(path)

    def valued_top_path(self, witness: Element) -> tuple[tuple[str, str], str]:
        path, (leaf, value) = self.path_to(witness), self.leaf(witness)
        return self.lead(path + leaf), value

    def lead(self, path: str) -> tuple[str, str]:
        """Spell the beginning of a top-level path, which starts at the document node."""
        if self.chance(0.08, "doc-variable"):
            self.use("doc-variable")
            return f"$doc{path}", path
        if self.chance(0.05, "msg-variable"):
            self.use("msg-variable")
            return f"$msg{path}", path
        if self.chance(0.12, "relative"):
            self.use("relative")
            return (f".{path}" if path.startswith("//") else path[1:]), path
        self.use("absolute")
        return path, path

    # ── paths ────────────────────────────────────────────────────────────────────────────────

    def path_to(self, witness: Element) -> str:
        """An absolute path that, but for the changes it makes, selects the witness."""
        return self.path_along(witness.ancestry(), 0)

    def path_along(self, line: list[Element], depth: int) -> str:
        """Steps along a line of elements, some of them jumped over by `//`."""
        steps: list[str] = []
        jumped = False
        for element in line:
            if element is not line[-1] and self.chance(0.45, "descendant", "dot-descendant"):
                jumped = True
                continue
            axis = "//" if jumped or self.chance(0.1, "descendant", "dot-descendant") else "/"
            self.use("descendant" if axis == "//" else "child")
            predicates, positional = self.predicates(element, depth)
            steps.append(self.axis(axis, positional) + self.name_test(element.name) + predicates)
            jumped = False
        return "".join(steps)

    def axis(self, axis: str, positional: bool) -> str:
        """An axis, now and then in words or by a detour. `descendant::a[2]` is not `//a[2]`."""
        if axis == "//":
            ways = {"descendant-or-self::": "/descendant-or-self::node()/"}
            if not positional:
                ways["descendant::"] = "/descendant::"
        else:
            ways = {"child::": "/child::", "self::": "/self::node()/", "dot-step": "/./"}
        if not self.chance(0.05, *ways):
            return axis
        way = self.favoured if self.favoured in ways else self.random.choice(list(ways))
        self.use(way)
        return ways[way]

    def name_test(self, name: Name) -> str:
        if self.chance(0.12, "any"):
            self.use("any")
            return "*"
        if self.chance(0.06, "name"):
            name = Name("", self.random.choice(LOCALS))
        if self.chance(0.02, "prefixed", "prefixed-any"):
            name = Name(self.random.choice(("urn:p", "urn:q")), self.random.choice(LOCALS))
        if self.names_in_predicates and self.chance(0.1, *NAMES_IN_PREDICATES):
            return self.name_in_predicate(name)
        if self.chance(0.08, "any-prefix"):
            self.use("any-prefix")
            return f"*:{name.local}"
        if not name.uri:
            self.use("name")
            return name.local
        if self.chance(0.25, "prefixed-any"):
            self.use("prefixed-any")
            return f"{_PREFIX[name.uri]}:*"
        self.use("prefixed")
        return f"{_PREFIX[name.uri]}:{name.local}"

    names_in_predicates = True
    """Whether names may be asked for by functions in predicates."""

    def name_in_predicate(self, name: Name) -> str:
        """A step that selects the name by a predicate."""
        way = self.random.choice(NAMES_IN_PREDICATES)
        if self.favoured in NAMES_IN_PREDICATES:
            way = self.favoured
        self.use(way)
        prefixed = f"{_PREFIX[name.uri]}:{name.local}" if name.uri else name.local
        local, uri = f"local-name() = '{name.local}'", f"namespace-uri(.) = '{name.uri}'"
        match way:
            case "local-name()":
                return f"*[{local}]"
            case "namespace-uri()":
                return self.random.choice((f"*[{uri}]", f"*[{local} and {uri}]", f"*[{uri}][{local}]"))
            case "name()":
                return f"*[name() = '{prefixed}']"
            case "self::name":
                return f"*[self::{prefixed}]"
        other = self.random.choice(LOCALS)
        return self.random.choice(
            (f"*[self::{prefixed} or self::{other}]", f"*['{other}' = local-name() or {local} and {uri}]")
        )

    def attribute_test(self, name: Name) -> str:
        if self.names_in_predicates and self.chance(0.05, "@local-name()"):
            self.use("@local-name()")
            return f"@*[local-name() = '{name.local}']"
        at = "@"
        if self.chance(0.04, "attribute::"):
            self.use("attribute::")
            at = "attribute::"
        if self.chance(0.1, "any-attribute"):
            self.use("any-attribute")
            return f"{at}*"
        if self.chance(0.06, "any-prefix-attribute"):
            self.use("any-prefix-attribute")
            return f"{at}*:{name.local}"
        if name.uri:
            self.use("xml-attribute" if name.uri == XML else "prefixed-attribute")
            return f"{at}{_PREFIX[name.uri]}:{name.local}"
        return at + name.local

    def leaf(self, element: Element) -> tuple[str, str]:
        """A last step to a value of an element, and that value: an attribute, a text node, itself."""
        if self.chance(0.45, "attribute", "descendant-attribute", "any-attribute", "xml-attribute",
                       "prefixed-attribute", "predicate-on-attribute"):  # fmt: skip
            holder, axis = element, "/"
            if self.chance(0.15, "descendant-attribute"):
                holder, axis = self.random.choice([element, *element.descendants()]), "//"
            self.use("attribute" if axis == "/" else "descendant-attribute")
            name, value = self.attribute_of(holder)
            step = axis + self.attribute_test(name)
            if self.chance(0.04, "predicate-on-attribute"):
                self.use("predicate-on-attribute")
                step += f"[{self.dot_test(value)}]"
            return step, value
        if self.chance(0.6, "text", "descendant-text", "predicate-on-text"):
            holder, axis = element, "/"
            if self.chance(0.2, "descendant-text"):
                holder, axis = self.random.choice([element, *element.descendants()]), "//"
            self.use("text" if axis == "/" else "descendant-text")
            texts = holder.texts() or [self.random.choice(VALUES)]
            value = self.random.choice(texts)
            step = f"{axis}text()"
            if self.chance(0.08, "predicate-on-text"):
                self.use("predicate-on-text")
                step += self.random.choice((f"[{self.dot_test(value)}]", f"[{texts.index(value) + 1}]"))
            return step, value
        return "", element.string_value()

    def attribute_of(self, element: Element) -> tuple[Name, str]:
        wanted = {"prefixed-attribute": "urn:p", "xml-attribute": XML}.get(self.favoured)
        if wanted is not None and self.random.random() < 0.7:
            for holder in (element, *element.ancestry(), *element.ancestry()[0].descendants()):
                for name, value in holder.attributes.items():
                    if name.uri == wanted:
                        return name, value
            local = "lang" if wanted == XML else self.random.choice(ATTRIBUTES)
            return Name(wanted, local), self.random.choice(VALUES)
        if element.attributes and self.random.random() < 0.9:
            return self.random.choice(list(element.attributes.items()))
        return Name("", self.random.choice(ATTRIBUTES)), self.random.choice(VALUES)

    def elsewhere(self, witness: Element) -> Element:
        """Another element of the same document."""
        root = witness.ancestry()[0]
        return self.random.choice([root, *root.descendants()])

    # ── predicates ───────────────────────────────────────────────────────────────────────────

    def predicates(self, element: Element, depth: int) -> tuple[str, bool]:
        """The predicates of one step, seldom more than one, and whether a position is among them."""
        likely = (0.2, 0.1, 0.1, 0.1, 0.0)[depth]
        made: list[str] = []
        kinds: list[str] = []
        while (
            likely
            and len(made) < 3
            and self.chance(
                likely,
                "several-predicates",
                "position-after-filter",
                "filter-after-position",
                "nested-predicate",
            )
        ):
            if self.chance(
                0.2, "position", "position-never", "position-after-filter", "filter-after-position"
            ):
                made.append(f"[{self.position(element)}]")
                kinds.append("position")
            else:
                made.append(f"[{self.condition(element, depth)}]")
                kinds.append("filter")
                if depth > 0:
                    self.use("nested-predicate")
        if len(made) > 1:
            self.use("several-predicates")
            for before, after in pairwise(kinds):
                if (before, after) == ("filter", "position"):
                    self.use("position-after-filter")
                if (before, after) == ("position", "filter"):
                    self.use("filter-after-position")
        return "".join(made), "position" in kinds

    def position(self, element: Element) -> str:
        if self.chance(0.08, "position-never"):
            self.use("position-never")
            return self.random.choice(("0", "1.5", "-1", "1000000000000"))
        self.use("position")
        siblings = element.parent.elements() if element.parent else [element]
        same = [sibling for sibling in siblings if sibling.name == element.name]
        right = [id(sibling) for sibling in same].index(id(element)) + 1
        return str(right if self.random.random() < 0.7 else self.random.randint(1, 4))

    def condition(self, element: Element, depth: int) -> str:
        """A boolean expression, mostly true of the element."""
        if depth < 3:
            for word in ("and", "or"):
                if self.chance(0.1, word):
                    self.use(word)
                    operands = [
                        self.condition(element, depth + 1) for _ in range(self.random.choice((2, 2, 3)))
                    ]
                    return f" {word} ".join(self.grouped(operand, "")[0] for operand in operands)
            if self.chance(0.08, "not"):
                self.use("not")
                return f"not({self.condition(element, depth + 1)})"
        if self.chance(0.06, "union-in-predicate", "union-compared"):
            self.use("union-in-predicate")
            (left, value, _), (right, _, _) = self.inner_path(element, depth), self.inner_path(element, depth)
            if self.chance(0.4, "union-compared"):
                self.use("union-compared")
                return self.compared(f"({left} | {right})", *self.comparison(value))
            return f"{left} | {right}"
        if self.chance(0.01, "constant"):
            self.use("constant")
            return self.random.choice(("true()", "false()"))
        return self.atom(element, depth)

    def atom(self, element: Element, depth: int) -> str:
        """One path, or one test of a path."""
        path, value, kind = self.inner_path(element, depth)
        tested = ("compare-attribute", "compare-text", "compare-path", "compare-dot",
                  "contains", "starts-with", "swapped", "ordered-string")  # fmt: skip
        if kind == "dot" or self.chance(0.55, *tested):
            self.use(f"compare-{kind}")
            if self.chance(0.12, "contains", "starts-with"):
                return self.function(value).format(path)
            return self.compared(path, *self.comparison(value))
        self.use("exists-attribute" if kind == "attribute" else "exists-path")
        return path

    def dot_test(self, value: str) -> str:
        self.use("dot")
        if self.chance(0.2, "contains", "starts-with"):
            return self.function(value).format(".")
        return self.compared(".", *self.comparison(value))

    def inner_path(self, element: Element, depth: int) -> tuple[str, str, str]:
        """A path inside a predicate, a value found at its end, and what kind of path it is."""
        if self.chance(0.04, "absolute-in-predicate"):
            self.use("absolute-in-predicate")
            other = self.elsewhere(element)
            leaf, value = self.leaf(other)
            line = other.ancestry()
            return self.path_along(line, depth + 1) + leaf, value, "path"
        if self.chance(0.1, "dot", "compare-dot"):
            self.use("dot")
            return ".", element.string_value(), "dot"
        target, line = self.below(element)
        leaf, value = self.leaf(target)
        path = self.path_along(line, depth + 1) + leaf
        if not path:
            self.use("dot")
            return ".", value, "dot"
        kind = (
            "path"
            if line
            else ("attribute" if leaf.startswith("/@") else "text" if leaf.startswith("/t") else "path")
        )
        if path.startswith("//"):
            self.use("dot-descendant")
            return f".{path}", value, kind
        if self.chance(0.08, "dot-child"):
            self.use("dot-child")
            return f".{path}", value, kind
        return path[1:], value, kind

    def below(self, element: Element) -> tuple[Element, list[Element]]:
        """An element at or below this one, and the line of elements that leads to it."""
        target = element
        if self.chance(0.5, "exists-path", "compare-path", "dot-child", "dot-descendant", "nested-predicate"):
            inner = list(element.descendants())
            if inner:
                target = self.random.choice(inner)
        return target, target.ancestry()[len(element.ancestry()) :]

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def comparison(self, value: str) -> tuple[str, str]:
        """An operator and a literal; half of them hold for the value."""
        operator = self.random.choice(("=", "=", "=", "!=", "<", "<=", ">", ">="))
        if self.favoured in _SWAP:
            operator = self.favoured
        if self.random.random() < 0.25:
            value = self.random.choice(VALUES)
        number = number_of(value)
        if number is None and (operator not in ("=", "!=") or self.chance(0.05, "number", "negative")):
            number = self.random.choice((-3.0, 0.0, 1.0, 2.0, 2.5, 10.0, 11.0))
        if number is not None and self.chance(0.7, "number", "negative"):
            if operator not in ("=", "!=") and self.random.random() < 0.6:
                number += self.random.choice((-1, 0.5, 1))
            literal = self.spell_number(number)
            if operator not in ("=", "!=") and self.chance(0.15, "ordered-string"):
                self.use("ordered-string")
                return operator, f"'{literal}'"
            self.use("number")
            return operator, literal
        self.use("string")
        if operator not in ("=", "!="):
            self.use("ordered-string")
        return operator, quote(value)

    def spell_number(self, number: float) -> str:
        if self.chance(0.0, "negative") and number > 0:
            number = -number
        if number < 0:
            self.use("negative")
        if number != int(number):
            return repr(number).replace("0.", ".") if self.random.random() < 0.3 else repr(number)
        return f"{int(number)}{self.random.choice(('', '', '', '.0', '.'))}"

    def compared(self, path: str, operator: str, literal: str) -> str:
        self.use(operator)
        gap = self.random.choice(("", " "))
        # The choice must be the same for both spellings of a top-level path: it hangs on the literal.
        if self.favoured == "swapped" or _stable_hash(literal) % 5 == 0:
            self.use("swapped")
            return f"{literal} {_SWAP[operator]} {path}"
        return f"{path}{gap}{operator}{gap}{literal}"

    def function(self, value: str) -> str:
        """A call with a place for its path."""
        name = self.random.choice(("contains", "starts-with"))
        if self.favoured in ("contains", "starts-with"):
            name = self.favoured
        self.use(name)
        if self.random.random() < 0.25:
            value = self.random.choice(VALUES)
        start = 0 if name == "starts-with" else self.random.randint(0, len(value))
        part = value[start : start + self.random.randint(0 if self.random.random() < 0.1 else 1, 4)]
        return f"{name}({{}}, {quote(part).replace('{', '{{').replace('}', '}}')})"


def _stable_hash(text: str) -> int:
    """A hash that is the same in every run."""
    return sum(map(ord, text))
