"""Random filters over all of XPath 1.0: every axis, node test, function and operator.

Unlike `random_queries` they are not grown around an element. Documents have few names, so that random paths
often select something. Each filter knows which productions it uses, so that a run can count what it covered.
"""

from __future__ import annotations

from random import Random

from tests.helpers.random_documents import ATTRIBUTES, LOCALS, NAMESPACES, VALUES
from tests.helpers.random_queries import RandomQuery, without_any_prefix

AXES = (
    "child", "descendant", "descendant-or-self", "attribute", "self", "parent", "ancestor",
    "ancestor-or-self", "following-sibling", "preceding-sibling", "following", "preceding",
)  # fmt: skip
NODE_TESTS = (
    "name", "any-name", "prefixed-any", "any-prefix", "node()", "text()", "comment()",
    "processing-instruction()", "processing-instruction('')",
)  # fmt: skip
FUNCTIONS = (
    "last", "position", "count", "local-name", "namespace-uri", "name", "string", "concat", "starts-with",
    "contains", "substring-before", "substring-after", "substring", "string-length", "normalize-space",
    "translate", "boolean", "not", "true", "false", "lang", "number", "sum", "floor", "ceiling", "round",
)  # fmt: skip
OPERATORS = ("or", "and", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "div", "mod", "negative", "|")
SHAPES = (
    "filter",
    "filter-steps",
    "union-steps",
    "positional",
    "condition",
    "parent-abbreviated",
    "absolute-inside",
)
PRODUCTIONS = (
    *(f"axis {name}" for name in AXES),
    *(f"test {name}" for name in NODE_TESTS),
    *(f"function {name}" for name in FUNCTIONS),
    *(f"operator {name}" for name in OPERATORS),
    *SHAPES,
)

_KINDS = ("nodes", "number", "text", "boolean")
_PREFIXES = tuple(NAMESPACES)


def query(random: Random, production: str) -> RandomQuery:
    """One filter that uses `production`."""
    for _ in range(4000):
        grower = Grower(random, production)
        text = grower.filter()
        if production in grower.used:
            return RandomQuery(text, without_any_prefix(text), frozenset(grower.used))
    raise AssertionError(f"no query with {production!r} was made")


class Grower:
    """Grows one filter. `favoured` is a production that is chosen wherever it can be."""

    def __init__(self, random: Random, favoured: str) -> None:
        self.random = random
        self.favoured = favoured
        self.used: set[str] = set()
        self.predicates = 0
        self.at_attribute = False
        """Whether the context node may be an attribute."""

    def pick(self, family: str, names: tuple[str, ...]) -> str:
        """One of the names, the favoured one more often."""
        favoured = [name for name in names if f"{family} {name}" == self.favoured]
        name = favoured[0] if favoured and self.random.random() < 0.6 else self.random.choice(names)
        self.used.add(f"{family} {name}")
        return name

    def chance(self, probability: float, *shapes: str) -> bool:
        if self.favoured in shapes:
            probability = max(probability, 0.6)
        taken = self.random.random() < probability
        if taken and len(shapes) == 1 and shapes[0] in SHAPES:
            self.used.add(shapes[0])
        return taken

    def filter(self) -> str:
        kind = self.random.choice(("boolean", "boolean", "boolean", "nodes", "number", "text"))
        return self.value(kind, 0)

    def value(self, kind: str, depth: int) -> str:
        make = {"nodes": self.nodes, "number": self.number, "text": self.text, "boolean": self.boolean}
        return make[kind](depth)

    # ── node sets ────────────────────────────────────────────────────────────────────────────

    def nodes(self, depth: int) -> str:
        if depth < 2 and self.chance(0.1, "operator |"):
            self.used.add("operator |")
            return f"{self.operand_nodes(depth + 1)} | {self.operand_nodes(depth + 1)}"
        return self.operand_nodes(depth)

    def operand_nodes(self, depth: int) -> str:
        """Nodes that can stand next to `|`."""
        if depth < 2 and self.chance(0.12, "filter"):
            self.used.add("filter")
            path = f"({self.nodes(depth + 1)}){self.predicate(depth, True)}"
            return path + (self.steps(depth, True) if self.chance(0.4, "filter-steps") else "")
        if depth < 2 and self.chance(0.08, "union-steps"):
            left, right = self.path(depth + 1), self.path(depth + 1)
            return f"({left} | {right}){self.steps(depth, True)}"
        return self.path(depth)

    def path(self, depth: int) -> str:
        if self.predicates and not self.chance(0.15, "absolute-inside"):
            return f".{self.steps(depth, self.at_attribute)}"
        start = self.random.choice(("/", "//")) + self.random.choice((*LOCALS[:3], "*", "*"))
        return start + (self.steps(depth, False) if self.chance(0.8, *SHAPES, self.favoured) else "")

    def steps(self, depth: int, after_attribute: bool) -> str:
        made = ""
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            step, axis = self.step(depth, after_attribute)
            # A `//` after an attribute leads to the attribute itself: what follows would start there too.
            made += ("//" if not after_attribute and self.random.random() < 0.12 else "/") + step
            after_attribute = axis == "attribute" or (
                after_attribute and axis in ("self", "descendant-or-self", "ancestor-or-self")
            )
        return made

    def step(self, depth: int, after_attribute: bool) -> tuple[str, str]:
        if self.chance(0.06, "parent-abbreviated"):
            return "..", "parent"
        # From attributes libxml2 leaves out nodes on these axes (docs/language.md).
        axes = tuple(axis for axis in AXES if not after_attribute or axis not in ("following", "preceding"))
        axis = self.pick("axis", axes)
        test = self.node_test(axis)
        predicates = ""
        if depth < 3:
            while self.random.random() < 0.3:
                predicates += self.predicate(depth, after_attribute or axis == "attribute")
        return f"{axis}::{test}{predicates}", axis

    def node_test(self, axis: str) -> str:
        name = self.pick("test", NODE_TESTS)
        match name:
            case "name":
                return self.random.choice(ATTRIBUTES[:3] if axis == "attribute" else LOCALS[:4])
            case "any-name":
                return "*"
            case "prefixed-any":
                return f"{self.random.choice(_PREFIXES)}:*"
            case "any-prefix":
                return f"*:{self.random.choice(ATTRIBUTES[:3] if axis == 'attribute' else LOCALS[:4])}"
            case "processing-instruction('')":
                target = self.random.choice(("a", "x", "t"))
                return f"processing-instruction('{target}')"
        return name

    def predicate(self, depth: int, at_attribute: bool) -> str:
        self.predicates += 1
        outside, self.at_attribute = self.at_attribute, at_attribute
        if self.chance(0.35, "positional", "function last", "function position"):
            self.used.add("positional")
            made = self.positional()
        else:
            self.used.add("condition")
            made = self.value(self.random.choice(("boolean", "nodes", "text")), depth + 1)
        self.predicates -= 1
        self.at_attribute = outside
        return f"[{made}]"

    def positional(self) -> str:
        last, position = self.random.random() < 0.5, self.random.choice(("1", "2", "3"))
        if self.favoured == "function last" or (last and self.favoured != "function position"):
            self.used.add("function last")
            return self.random.choice(("last()", "last() - 1", f"last() > {position}", "position() = last()"))
        self.used.add("function position")
        return self.random.choice(
            (position, f"position() = {position}", f"position() != {position}", "position() mod 2 = 1")
        )

    # ── numbers ──────────────────────────────────────────────────────────────────────────────

    def number(self, depth: int) -> str:
        if depth < 3 and self.chance(0.35, *(f"operator {name}" for name in ("+", "-", "*", "div", "mod"))):
            operator = self.pick("operator", ("+", "-", "*", "div", "mod"))
            return f"({self.number(depth + 1)} {operator} {self.number(depth + 1)})"
        if self.chance(0.06, "operator negative"):
            self.used.add("operator negative")
            return f"-{self.number_operand(depth + 1)}"
        return self.number_operand(depth)

    def number_operand(self, depth: int) -> str:
        names = ("count", "string-length", "number", "sum", "floor", "ceiling", "round")
        if depth > 3 or not self.chance(0.7, *(f"function {name}" for name in names)):
            return self.random.choice(("0", "1", "2", "3", "10", "0.5", "2.5"))
        name = self.pick("function", names)
        match name:
            case "count" | "sum":
                return f"{name}({self.nodes(depth + 1)})"
            case "string-length" | "number":
                if self.predicates and self.random.random() < 0.3:
                    return f"{name}()"
                return f"{name}({self.value(self.random.choice(_KINDS), depth + 1)})"
        return f"{name}({self.number(depth + 1)})"

    # ── strings ──────────────────────────────────────────────────────────────────────────────

    def text(self, depth: int) -> str:
        names = (
            "local-name", "namespace-uri", "name", "string", "concat", "substring-before", "substring-after",
            "substring", "normalize-space", "translate",
        )  # fmt: skip
        if depth > 3 or not self.chance(0.75, *(f"function {name}" for name in names)):
            return self.literal()
        name = self.pick("function", names)
        match name:
            case "local-name" | "namespace-uri" | "name":
                if self.predicates and self.random.random() < 0.4:
                    return f"{name}()"
                return f"{name}({self.nodes(depth + 1)})"
            case "string" | "normalize-space":
                if self.predicates and self.random.random() < 0.3:
                    return f"{name}()"
                return f"{name}({self.stringlike(depth + 1)})"
            case "concat":
                count = self.random.choice((2, 2, 3))
                return f"concat({', '.join(self.stringlike(depth + 1) for _ in range(count))})"
            case "substring":
                ends = ", ".join(self.small_number() for _ in range(self.random.choice((1, 2))))
                return f"substring({self.stringlike(depth + 1)}, {ends})"
            case "translate":
                return f"translate({self.stringlike(depth + 1)}, {self.literal()}, {self.literal()})"
        return f"{name}({self.stringlike(depth + 1)}, {self.part()})"

    def stringlike(self, depth: int) -> str:
        """An expression that is used as a string. No computed numbers: libxml2 writes them with 15 digits."""
        return self.value(self.random.choice(("nodes", "nodes", "text", "boolean")), depth)

    def small_number(self) -> str:
        return self.random.choice(
            ("0", "1", "2", "3", "-1", "1.5", "2.5", "count(//*)", "1 div 0", "number('x')")
        )

    def literal(self) -> str:
        value = self.random.choice((*VALUES, *LOCALS[:2], "", "a", "1"))
        quote = '"' if "'" in value else "'"
        return f"{quote}{value}{quote}"

    def part(self) -> str:
        return self.random.choice(("'a'", "'1'", "' '", "'e'", "''", self.literal()))

    # ── booleans ─────────────────────────────────────────────────────────────────────────────

    def boolean(self, depth: int) -> str:
        words = ("and", "or")
        if depth < 3 and self.chance(0.2, *(f"operator {word}" for word in words)):
            word = self.pick("operator", words)
            return f"({self.condition(depth + 1)} {word} {self.condition(depth + 1)})"
        # lxml starts a filter at the root element, so what depends on the context is in predicates only.
        names = ("boolean", "not", "true", "false", "starts-with", "contains") + ("lang",) * bool(
            self.predicates
        )
        if depth > 3 or self.chance(0.3, *(f"function {name}" for name in names)):
            name = self.pick("function", names)
            match name:
                case "boolean" | "not":
                    return f"{name}({self.condition(depth + 1) if depth < 4 else '1'})"
                case "true" | "false":
                    return f"{name}()"
                case "lang":
                    language = self.random.choice(("x", "xy", "en", "1", "a"))
                    return f"lang('{language}')"
            return f"{name}({self.stringlike(depth + 1)}, {self.part()})"
        operator = self.pick("operator", ("=", "!=", "<", "<=", ">", ">="))
        left, right = self.random.choice(_KINDS), self.random.choice(_KINDS)
        return f"({self.value(left, depth + 1)} {operator} {self.value(right, depth + 1)})"

    def condition(self, depth: int) -> str:
        return self.value(self.random.choice(("boolean", "boolean", "nodes", "number", "text")), depth)
