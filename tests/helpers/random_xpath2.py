"""Random filters with the features of XPath 2.0, and the equivalent filters for Saxon.

Comparisons of untyped values and the functions of one string mean something else in XPath 2.0. For Saxon they
are spelled out as docs/language.md defines them; everything else is the same text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.helpers.random_documents import LOCALS, VALUES

FUNCTIONS = (
    "exists",
    "empty",
    "ends-with",
    "lower-case",
    "upper-case",
    "matches",
    "replace",
    "tokenize",
    "string-join",
    "abs",
    "min",
    "max",
    "avg",
    "sum",
    "count",
    "distinct-values",
    "xs:integer",
    "xs:decimal",
    "xs:double",
)
TYPES = ("string", "boolean", "integer", "decimal", "double", "date", "dateTime")
OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge", "except", "intersect", "union")
SHAPES = (
    "strings",
    "numbers",
    "items",
    "item-position",
    "if-condition",
    "if-nodes",
    "nested-step",
    "function-step",
    "castable-empty",
    "quantified",
    "words",
    "dates",
)
PRODUCTIONS = (
    *(f"function {name}" for name in FUNCTIONS),
    *(f"castable {name}" for name in TYPES),
    *(f"operator {name}" for name in OPERATORS),
    *(f"flag {flag}" for flag in "imsxq"),
    *SHAPES,
)

SELDOM_TRUE = (
    *(f"operator {name}" for name in ("eq", "lt", "le", "gt", "ge")),
    *(f"castable {name}" for name in ("integer", "decimal", "double", "date", "dateTime")),
    *(f"flag {flag}" for flag in "imsxq"),
)
"""Productions that few messages satisfy."""

PROLOG = r"""
declare namespace p = "urn:p"; declare namespace q = "urn:q";
declare function local:number($value) as xs:double {
  if (empty($value)) then number('NaN')
  else if ($value[1] instance of xs:double or $value[1] instance of xs:boolean) then number($value[1])
  else if (matches(string($value[1]), '^[ \t\n\r]*-?([0-9]+(\.[0-9]*)?|\.[0-9]+)[ \t\n\r]*$'))
  then number(string($value[1])) else number('NaN')
};
declare function local:numbers($values) as xs:double* { for $value in $values return local:number($value) };
declare function local:cast($text as xs:string, $pattern as xs:string) as xs:double {
  if (matches($text, $pattern)) then xs:double($text) else number('NaN')
};
declare variable $messages external;
"""

# No `\\s*$`: with the flag `m`, Saxon 12 does not give back a line end that `\\s*` took.
PATTERNS = (
    "^[a-c]+$",
    "\\d",
    "^\\d+$",
    "x|y",
    "^.$",
    "[a-z-[b]]",
    "^\\s*\\d+(\\.\\d+)?$",
    "\\i\\c*",
    "^\\p{Lu}?\\w+",
    "^$",
    "a b",
    "(a|b)(c|y)?",
    "\\S\\s\\S",
    "[^a-z]",
    "^(x|y){1,2}$",
    "^1",
    "1$",
    "A",
)
SPLITTERS = ("\\s+", "x", ",", "[ab]", "1", "\\.")
NEVER_EMPTY = ("a", "\\d", "x|y", "\\s+", "(a)(b)?", "[^a]")


@dataclass(frozen=True, slots=True)
class Both:
    """An expression, and its equivalent for Saxon."""

    text: str
    saxon: str


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    saxon: str
    productions: frozenset[str] = field(default_factory=frozenset)


ENVELOPE_PATHS = (
    "$envelope/header",
    "$envelope/header[@name = 'a']",
    "$envelope/header[@name = 'priority']",
    "$envelope/header/@name",
    "$envelope/source",
    "$envelope/*",
    "$envelope//*",
    "$envelope",
)


def query(random: Random, production: str, starts: tuple[str, ...] = ()) -> Query:
    """One filter that uses `production`. Half of its paths begin with one of `starts`, if there are any."""
    for _ in range(4000):
        grower = Grower(random, production, starts)
        made = grower.condition(0)
        if production in grower.used:
            return Query(made.text, made.saxon, frozenset(grower.used))
    raise AssertionError(f"no query with {production!r} was made")


def literal(text: str) -> str:
    quote = '"' if "'" in text else "'"
    return f"{quote}{text}{quote}"


def saxon_literal(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', '""') + '"'


class Grower:
    """Grows one filter. `favoured` is a production that is chosen wherever it can be."""

    def __init__(self, random: Random, favoured: str, starts: tuple[str, ...]) -> None:
        self.random = random
        self.starts = starts
        self.favoured = favoured
        self.used: set[str] = set()
        self.predicates = 0

    def pick(self, family: str, names: tuple[str, ...]) -> str:
        favoured = [name for name in names if f"{family} {name}" == self.favoured]
        name = favoured[0] if favoured and self.random.random() < 0.7 else self.random.choice(names)
        self.used.add(f"{family} {name}")
        return name

    def chance(self, probability: float, *shapes: str) -> bool:
        if self.favoured in shapes:
            probability = max(probability, 0.6)
        return self.random.random() < probability

    def shape(self, name: str, probability: float) -> bool:
        taken = self.chance(probability, name)
        if taken:
            self.used.add(name)
        return taken

    # ── nodes ────────────────────────────────────────────────────────────────────────────────

    def nodes(self, depth: int) -> Both:
        sets = ("except", "intersect", "union")
        if depth < 3 and self.chance(0.15, *(f"operator {name}" for name in sets)):
            operator = self.pick("operator", sets)
            left, right = self.nodes(depth + 1), self.nodes(depth + 1)
            return Both(f"({left.text} {operator} {right.text})", f"({left.saxon} {operator} {right.saxon})")
        if depth < 3 and self.shape("if-nodes", 0.08):
            condition, left, right = self.condition(depth + 1), self.nodes(depth + 1), self.nodes(depth + 1)
            return Both(
                f"(if ({condition.text}) then {left.text} else {right.text})",
                f"(if ({condition.saxon}) then {left.saxon} else {right.saxon})",
            )
        return self.path(depth)

    def path(self, depth: int) -> Both:
        if self.starts and self.random.random() < 0.5:
            start = self.random.choice(self.starts)
            start += self.random.choice(("", "", "/..", "/following-sibling::*[1]", "/text()"))
            return Both(start, start)
        name = self.random.choice((*LOCALS[:3], "*"))
        text = self.random.choice(("", "//", ".//", "/*/") if self.predicates else ("//", "/*/", "//*/"))
        text += name
        saxon = text
        for _ in range(self.random.choice((0, 0, 1, 2))):
            step = self.step(depth)
            text, saxon = f"{text}/{step.text}", f"{saxon}/{step.saxon}"
        if self.random.random() < 0.3:
            last = self.random.choice(("@x", "@y", "@*", "text()"))
            text, saxon = f"{text}/{last}", f"{saxon}/{last}"
        return Both(text, saxon)

    def step(self, depth: int) -> Both:
        if depth < 3 and self.shape("nested-step", 0.2):
            self.predicates += 1
            comma = self.random.choice((" | ", ", "))
            left, right = self.inner(depth), self.inner(depth)
            self.predicates -= 1
            return Both(f"({left.text}{comma}{right.text})", f"({left.saxon}{comma}{right.saxon})")
        name = self.random.choice((*LOCALS[:3], "*", ".."))
        if self.random.random() < 0.1:
            name = "."
        if depth < 2 and self.random.random() < 0.3:
            self.predicates += 1
            condition = self.condition(depth + 2)
            self.predicates -= 1
            return Both(f"{name}[{condition.text}]", f"{name}[{condition.saxon}]")
        return Both(name, name)

    def inner(self, depth: int) -> Both:
        name = self.random.choice((*LOCALS[:3], "..", "*", "*[1]", "descendant::b"))
        return Both(name, name)

    # ── strings and numbers ──────────────────────────────────────────────────────────────────

    def string(self, depth: int) -> Both:
        names = ("lower-case", "upper-case", "replace", "string-join")
        if depth > 3 or not self.chance(0.4, *(f"function {name}" for name in names), "flag q"):
            if self.random.random() < 0.25:
                return self.constant()
            nodes = self.nodes(depth + 1)
            return Both(nodes.text, f"string(({nodes.saxon})[1])")
        name = self.pick("function", names)
        if name == "string-join":
            items, separator = self.items(depth + 1), self.random.choice(("", "-", " "))
            return Both(
                f"string-join({items.text}, '{separator}')", f"string-join({items.saxon}, '{separator}')"
            )
        inner = self.string(depth + 1)
        if name == "replace":
            pattern, flags = self.random.choice(NEVER_EMPTY), self.flags()
            replacement = self.random.choice(("", "-", "<$0>")) if "q" not in flags else "$"
            rest = f"'{pattern}', '{replacement}'" + (f", '{flags}'" if flags else "")
            return Both(f"replace({inner.text}, {rest})", f"replace({inner.saxon}, {rest})")
        return Both(f"{name}({inner.text})", f"{name}({inner.saxon})")

    def constant(self) -> Both:
        value = self.random.choice((*VALUES, "a", "b", "1", ""))
        return Both(literal(value), saxon_literal(value))

    def flags(self) -> str:
        flags = tuple(f"flag {flag}" for flag in "imsxq")
        if not self.chance(0.3, *flags):
            return ""
        return self.pick("flag", ("i", "m", "s", "x", "q"))

    def number(self, depth: int) -> Both:
        names = ("abs", "min", "max", "avg", "sum", "count", "xs:integer", "xs:decimal", "xs:double")
        if depth > 3 or not self.chance(0.85, *(f"function {name}" for name in names)):
            value = self.random.choice(("0", "1", "2", "3", "10", "2.5"))
            return Both(value, f"{value}e0")
        name = self.pick("function", names)
        match name:
            case "abs":
                inner = self.number(depth + 1)
                return Both(f"abs({inner.text})", f"abs(local:number({inner.saxon}))")
            case "count":
                items = self.items(depth + 1)
                return Both(f"count({items.text})", f"xs:double(count({items.saxon}))")
            case "min" | "max" | "avg" | "sum":
                items = self.items(depth + 1)
                zero = ", 0e0" if name == "sum" else ""
                return Both(f"{name}({items.text})", f"{name}(local:numbers({items.saxon}){zero})")
        nodes = self.nodes(depth + 1)
        pattern = {
            "xs:integer": r"^[+-]?\d+$",
            "xs:decimal": r"^[+-]?(\d+(\.\d*)?|\.\d+)$",
            "xs:double": r"^([+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|-?INF|NaN)$",
        }[name]
        text = f"normalize-space(string(({nodes.saxon})[1]))"
        return Both(f"{name}({nodes.text})", f"local:cast({text}, '{pattern}')")

    # ── sequences ────────────────────────────────────────────────────────────────────────────

    def items(self, depth: int) -> Both:
        """Nodes or a sequence."""
        if depth < 4 and self.chance(0.2, "function tokenize", "words"):
            self.used.add("function tokenize")
            if self.shape("words", 0.2):
                inner = self.string(depth + 1)
                return Both(f"tokenize({inner.text})", f"tokenize({inner.saxon})")
            inner, splitter = self.string(depth + 1), self.random.choice(SPLITTERS)
            return Both(f"tokenize({inner.text}, '{splitter}')", f"tokenize({inner.saxon}, '{splitter}')")
        if depth < 4 and self.chance(0.12, "function distinct-values"):
            self.used.add("function distinct-values")
            items = self.items(depth + 1)
            return Both(
                f"distinct-values({items.text})",
                f"distinct-values(for $item in {items.saxon} return string($item))",
            )
        if depth < 4 and self.shape("items", 0.15):
            parts = [self.nodes(depth + 2), self.constant(), self.nodes(depth + 2)]
            self.random.shuffle(parts)
            return Both(
                f"({', '.join(part.text for part in parts)})", f"({', '.join(part.saxon for part in parts)})"
            )
        if depth < 4 and self.shape("function-step", 0.12):
            nodes = self.nodes(depth + 1)
            name = self.random.choice(("string()", "name()", "normalize-space(.)", "lower-case(string(.))"))
            return Both(f"{nodes.text}/{name}", f"({nodes.saxon})/{name}")
        if depth < 4 and self.shape("item-position", 0.08):
            items = self.items(depth + 1)
            position = self.random.choice(("1", "2", "last()"))
            return Both(f"({items.text})[{position}]", f"({items.saxon})[{position}]")
        return self.nodes(depth)

    # ── conditions ───────────────────────────────────────────────────────────────────────────

    def condition(self, depth: int) -> Both:
        singles = ("eq", "ne", "lt", "le", "gt", "ge")
        choices = ["call", "call", "strings", "numbers", "single", "castable", "compare", "compare", "if"]
        choices += ["quantified", "dates"]
        if self.favoured in ("strings", "numbers"):
            choices += [self.favoured] * 6
        if self.favoured.startswith("castable"):
            choices += ["castable"] * 6
        if self.favoured.startswith("operator") and self.favoured.split()[1] in singles:
            choices += ["single"] * 6
        if self.favoured.startswith(("function", "flag")):
            choices += ["call", "compare"] * 3
        if self.favoured == "if-condition":
            choices += ["if"] * 6
        if self.favoured in ("quantified", "dates"):
            choices += [self.favoured] * 6
        if depth > 3:
            choices = ["strings"]
        match self.random.choice(choices):
            case "strings":
                self.used.add("strings")
                return self.with_strings(depth)
            case "numbers":
                self.used.add("numbers")
                return self.with_numbers(depth)
            case "single":
                return self.single(depth, singles)
            case "castable":
                return self.castable(depth)
            case "if":
                self.used.add("if-condition")
                parts = [self.condition(depth + 1) for _ in range(3)]
                return Both(
                    "(if ({}) then {} else {})".format(*(part.text for part in parts)),
                    "(if ({}) then {} else {})".format(*(part.saxon for part in parts)),
                )
            case "compare":
                return self.compare(depth)
            case "quantified":
                return self.quantified(depth)
            case "dates":
                return self.dates(depth)
        return self.call(depth)

    def quantified(self, depth: int) -> Both:
        """`some` or `every`, of one variable or of two, the second below the first."""
        self.used.add("quantified")
        word = self.random.choice(("some", "every"))
        variable = f"$v{depth}"
        is_node = self.random.random() < 0.6
        nodes = self.nodes(depth + 1) if is_node else self.items(depth + 1)
        text, saxon = f"{variable} in {nodes.text}", f"{variable} in {nodes.saxon}"
        last = variable
        if is_node and self.random.random() < 0.3:
            last = f"$w{depth}"
            step = self.random.choice((*LOCALS[:3], "*", "@*", ".."))
            text, saxon = f"{text}, {last} in {variable}/{step}", f"{saxon}, {last} in {variable}/{step}"
        operator, value = self.random.choice(("=", "!=")), self.constant()
        of_variable = self.random.choice(("", "/*", "/@x", "/..") if is_node else ("",))
        values = f"(for $item in {last}{of_variable} return string($item))"
        passes = Both(f"{last}{of_variable} {operator} {value.text}", f"{values} {operator} {value.saxon}")
        if self.random.random() < 0.4:
            other = self.condition(depth + 1)
            joined = self.random.choice(("and", "or"))
            passes = Both(
                f"({passes.text} {joined} {other.text})", f"({passes.saxon} {joined} {other.saxon})"
            )
        return Both(f"({word} {text} satisfies {passes.text})", f"({word} {saxon} satisfies {passes.saxon})")

    def dates(self, depth: int) -> Both:
        """Dates of computed strings, which need not be dates, with a date."""
        self.used.add("dates")
        kind, time = self.random.choice((("xs:date", ""), ("xs:dateTime", "T10:00:00Z")))
        nodes = self.nodes(depth + 1)
        operator = self.random.choice(("=", "!=", "<", "<=", ">", ">="))
        day = self.random.choice(("'2026-01-01", "'2026-01-02", "'2025-12-31")) + f"{time}'"
        text = f"concat('2026-01-0', substring({nodes.text}, 1, 1), '{time}')"
        saxon = f"concat('2026-01-0', substring(string(({nodes.saxon})[1]), 1, 1), '{time}')"
        # A value that is no date compares as false.
        return Both(
            f"({kind}({text}) {operator} {kind}({day}))",
            f"(let $day := {saxon} return $day castable as {kind} and {kind}($day) {operator} {kind}({day}))",
        )

    def with_strings(self, depth: int) -> Both:
        operator = self.random.choice(("=", "=", "!="))
        items = self.items(depth + 1)
        constants = [self.constant() for _ in range(self.random.choice((0, 1, 2, 3)))]
        text = f"({', '.join(constant.text for constant in constants)})"
        saxon = f"({', '.join(constant.saxon for constant in constants)})"
        left = f"(for $item in {items.saxon} return string($item))"
        return Both(f"({items.text} {operator} {text})", f"({left} {operator} {saxon})")

    def with_numbers(self, depth: int) -> Both:
        operator = self.random.choice(("=", "!=", "<", ">="))
        items = self.items(depth + 1)
        constants = [
            self.random.choice(("1", "2", "11", "2.5")) for _ in range(self.random.choice((1, 2, 3)))
        ]
        text = f"({', '.join(constants)})"
        saxon = f"({', '.join(f'{constant}e0' for constant in constants)})"
        return Both(f"({items.text} {operator} {text})", f"(local:numbers({items.saxon}) {operator} {saxon})")

    def single(self, depth: int, singles: tuple[str, ...]) -> Both:
        operator = self.pick("operator", singles)
        symbol = dict(zip(singles, ("=", "!=", "<", "<=", ">", ">="), strict=True))[operator]
        items = self.items(depth + 1)
        value = self.random.choice(("1", "2", "11"))
        saxon = f"(count({items.saxon}) le 1 and local:numbers({items.saxon}) {symbol} {value}e0)"
        return Both(f"({items.text} {operator} {value})", saxon)

    def castable(self, depth: int) -> Both:
        name = self.pick("castable", TYPES)
        mark = "?" if self.shape("castable-empty", 0.2) else ""
        if self.random.random() < 0.15:
            value = self.random.choice(
                ("'2026-02-28'", "'2026-02-28T10:00:00Z'", "5", "'1e3'", "2.5", "'true'")
            )
            return Both(f"({value} castable as xs:{name}{mark})", f"({value} castable as xs:{name}{mark})")
        if self.random.random() < 0.3:
            nodes = self.nodes(depth + 1)
            moment = "'T10:00:00'" if name == "dateTime" else "''"
            text = f"concat('2026-01-0', substring({nodes.text}, 1, 1), {moment})"
            saxon = f"concat('2026-01-0', substring(string(({nodes.saxon})[1]), 1, 1), {moment})"
            return Both(f"({text} castable as xs:{name}{mark})", f"({saxon} castable as xs:{name}{mark})")
        nodes = self.nodes(depth + 1)
        # Saxon 12 does not take 'NaN ', which XML Schema's white space rule allows.
        given = f"for $n in {nodes.saxon} return normalize-space($n)" if name == "double" else nodes.saxon
        return Both(
            f"(({nodes.text}) castable as xs:{name}{mark})", f"(({given}) castable as xs:{name}{mark})"
        )

    def compare(self, depth: int) -> Both:
        if self.random.random() < 0.5:
            left, right = self.string(depth + 1), self.constant()
            operator = self.random.choice(("=", "!="))
            # Of a path, `=` would ask all nodes.
            return Both(
                f"(concat({left.text}, '') {operator} {right.text})",
                f"({left.saxon} {operator} {right.saxon})",
            )
        left, right = self.number(depth + 1), self.number(depth + 1)
        operator = self.random.choice(("=", "!=", "<", ">"))
        return Both(f"({left.text} {operator} {right.text})", f"({left.saxon} {operator} {right.saxon})")

    def call(self, depth: int) -> Both:
        names = ("exists", "empty", "ends-with", "matches")
        if self.favoured.startswith("flag") and self.random.random() < 0.7:
            name = "matches"
            self.used.add("function matches")
        else:
            name = self.pick("function", names)
        match name:
            case "exists" | "empty":
                items = self.items(depth + 1)
                return Both(f"{name}({items.text})", f"{name}({items.saxon})")
            case "ends-with":
                inner, suffix = self.string(depth + 1), self.constant()
                return Both(
                    f"ends-with({inner.text}, {suffix.text})", f"ends-with({inner.saxon}, {suffix.saxon})"
                )
        inner, pattern, flags = self.string(depth + 1), self.random.choice(PATTERNS), self.flags()
        if (pattern, flags) == ("^$", "m"):
            # Behind a line end at the end of the string, Saxon has no empty line (docs/language.md).
            flags = ""
        rest = f"'{pattern}'" + (f", '{flags}'" if flags else "")
        return Both(f"matches({inner.text}, {rest})", f"matches({inner.saxon}, {rest})")
