"""Translates transformations to XQuery 3.1 for Saxon.

Paths, order and construction mean the same in both. Comparisons and functions do not: they are spelled out
as XPath 1.0 defines them. Names are expanded, since a constructed `xmlns` would change those of paths too.
"""

import re
from collections.abc import Callable, Mapping

from tests.helpers.saxon_query import for_each_message, literal

XML = "http://www.w3.org/XML/1998/namespace"
NUMBER = re.compile(r"[ \t\n\r]*-?([0-9]+(\.[0-9]*)?|\.[0-9]+)[ \t\n\r]*")
WORDS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

TOKEN = re.compile(
    r"""\s*(?P<token>
        '[^']*' | "[^"]*"
      | [0-9]+(?:\.[0-9]*)? | \.[0-9]+
      | // | :: | := | != | <= | >= | \.\.
      | Q\{[^}]*\}(?:\*|[\w.-]+)
      | \*:[\w.-]+
      | (?!\d)[\w][\w.-]*(?::(?!:)(?:\*|[\w.-]+))?
      | [][()@,|=<>.*+$/{}-]
      | $
    )""",
    re.VERBOSE,
)
DECLARATION = re.compile(r"""\sxmlns(?::([\w.-]+))?\s*=\s*("[^"]*"|'[^']*')""")


def spelled(text: str, namespaces: Mapping[str, str]) -> str:
    """A query over all `$messages`: for each an element `oracle` with the output, `nothing` or `error`."""
    spelling = _Spelling(text, namespaces)
    output = spelling.transformation()
    bound = " or ".join(f"exists({block})" for block in spelling.bound)
    made = f"if ({bound}) then <oracle>{{ {output} }}</oracle> else <nothing/>"
    return for_each_message(made, namespaces)


class _Spelling:
    """Reads a transformation from left to right, and gives its parts as XQuery."""

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        self.text = text
        self.at = 0
        self.scopes: list[Mapping[str, str]] = [{"xml": XML, **namespaces}]
        self.predicates = 0
        self.bound: list[str] = []
        """For each `for` outside of others, its tuples."""
        self.depth = 0
        self.kinds: dict[str, str] = {}
        """The values of the variables of `let`."""

    # ── tokens ───────────────────────────────────────────────────────────────────────────────

    def peek(self) -> str:
        found = TOKEN.match(self.text, self.at)
        assert found is not None, (self.text, self.at)
        return found["token"]

    def take(self, *expected: str) -> str:
        found = TOKEN.match(self.text, self.at)
        assert found is not None, (self.text, self.at)
        assert not expected or found["token"] in expected, (self.text, self.at, expected)
        self.at = found.end()
        return found["token"]

    def taken(self, token: str) -> bool:
        """Whether it was there; then it is behind us."""
        there = self.peek() == token
        if there:
            self.take()
        return there

    # ── blocks and constructed elements ──────────────────────────────────────────────────────

    def transformation(self) -> str:
        return self.flwor() if self.peek() in ("for", "let") else self.constructor()

    def flwor(self) -> str:
        clauses = ""
        self.depth += 1
        while (word := self.peek()) in ("for", "let", "where"):
            self.take()
            if word == "where":
                clauses += f"where {self.condition(self.either())} "
                continue
            while True:
                self.take("$")
                variable = self.take()
                self.take("in" if word == "for" else ":=")
                value = self.either()
                if word == "for":
                    clauses += f"for ${variable} in {self.nodes(value)} "
                else:
                    self.kinds[variable] = value[0]
                    clauses += f"let ${variable} := {self.computed(value)[1]} "
                if not self.taken(","):
                    break
        if self.depth == 1:
            self.bound.append(f"{clauses} return 1")
        if self.peek() == "stable":
            self.take()
        if self.taken("order"):
            self.take("by")
            clauses += "order by " + self.order_key()
            while self.taken(","):
                clauses += ", " + self.order_key()
        self.take("return")
        returned = self.single()
        self.depth -= 1
        return f"({clauses} return {returned})"

    def order_key(self) -> str:
        kind, text = self.computed(self.either())
        key = f"(({text})[1] ! string(.))" if kind == "nodes" else text
        for words in (("ascending",), ("descending",)):
            if self.peek() in words:
                key += f" {self.take()}"
        # Where there is no key is left to each implementation.
        if self.taken("empty"):
            return f"{key} empty {self.take()}"
        return f"{key} empty least"

    def single(self) -> str:
        """An expression in braces or after `return`."""
        token = self.peek()
        if token in ("for", "let"):
            return self.flwor()
        if token == "<":
            return self.constructor()
        if token == "if" and self.calls("if"):
            self.take()
            self.take("(")
            condition = self.condition(self.either())
            self.take(")")
            self.take("then")
            yes = self.single()
            self.take("else")
            return f"(if ({condition}) then {yes} else {self.single()})"
        if token == "(":
            before = self.at
            self.take()
            if self.taken(")"):
                return "()"
            first = self.single()
            if self.peek() == "," or first.startswith(("(for", "(let", "(if")):
                parts = [first]
                while self.taken(","):
                    parts.append(self.single())
                self.take(")")
                return f"({', '.join(parts)})"
            self.at = before
        kind, text = self.computed(self.either())
        return (
            f"local:text({text})" if kind == "numeric" else f"string({text})" if kind == "boolean" else text
        )

    def constructor(self) -> str:
        """An element; here before its `<`."""
        start = self.text.index("<", self.at)
        head = re.compile(r"<[\w.:-]+").match(self.text, start)
        assert head is not None
        self.at = head.end()
        # Declarations hold for the whole tag, wherever they stand in it.
        declared = dict(self.scopes[-1])
        for prefix, uri in DECLARATION.findall(self.text[self.at : self.tag_end()]):
            declared[prefix] = re.sub(r"&amp;|&#58;", lambda m: {"&amp;": "&"}.get(m[0], ":"), uri[1:-1])
        self.scopes.append(declared)
        parts = [head[0]]
        while (character := self.text[self.at]) not in "/>":
            parts.append(self.value(character) if character in "'\"" else character)
            self.at += character not in "'\""
        empty = character == "/"
        self.at += 2 if empty else 1
        parts.append("/>" if empty else ">")
        if not empty:
            parts.append(self.content())
        self.scopes.pop()
        return "".join(parts)

    def tag_end(self) -> int:
        """Where the tag that is being read ends."""
        before, braces, quote = self.at, 0, ""
        while not (self.text[self.at] == ">" and not quote and not braces):
            character = self.text[self.at]
            if character in "{}":
                braces += 1 if character == "{" else -1
            elif character in "'\"" and not braces:
                quote = "" if quote == character else quote or character
            self.at += 1
        end, self.at = self.at, before
        return end

    def value(self, quote: str) -> str:
        """An attribute value with its quotes."""
        parts = [quote]
        self.at += 1
        while True:
            two = self.text[self.at : self.at + 2]
            if two in ("{{", "}}", quote * 2):
                parts.append(two)
                self.at += 2
            elif two[0] == quote:
                self.at += 1
                return "".join([*parts, quote])
            else:
                parts.append(self.character())

    def content(self) -> str:
        """Everything up to and with the end tag."""
        parts = []
        while True:
            rest = self.text[self.at : self.at + 9]
            if rest.startswith("</"):
                end = self.text.index(">", self.at) + 1
                parts.append(self.text[self.at : end])
                self.at = end
                return "".join(parts)
            if rest == "<![CDATA[":
                end = self.text.index("]]>", self.at) + 3
                parts.append(self.text[self.at : end])
                self.at = end
            elif rest.startswith("<"):
                parts.append(self.constructor())
            elif rest[:2] in ("{{", "}}"):
                parts.append(rest[:2])
                self.at += 2
            else:
                parts.append(self.character())

    def character(self) -> str:
        """A character, or an expression in braces."""
        character = self.text[self.at]
        self.at += 1
        if character != "{":
            return character
        parts = [self.single()]
        while self.taken(","):
            parts.append(self.single())
        self.take("}")
        return f"{{ {', '.join(parts)} }}"

    # ── conditions ───────────────────────────────────────────────────────────────────────────

    # An operand is what it is (`nodes`, `boolean`, `string`, `number`) and how it is spelled. The last two
    # are literals; `text` and `numeric` are computed.

    def either(self) -> tuple[str, str]:
        return self.joined("or", self.both)

    def both(self) -> tuple[str, str]:
        return self.joined("and", self.comparison)

    def joined(self, word: str, operand: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        operands = [operand()]
        while self.taken(word):
            operands.append(operand())
        if len(operands) == 1:
            return operands[0]
        return "boolean", "(" + f" {word} ".join(map(self.condition, operands)) + ")"

    def comparison(self) -> tuple[str, str]:
        left = self.sum()
        if self.peek() not in WORDS:
            return left
        operator = self.take()
        right = self.sum()
        literals = ("string", "number")
        if not {left[0], right[0]} & {*literals} or {left[0], right[0]} & {"text", "numeric"}:
            return "boolean", self.compared(self.computed(left), operator, self.computed(right))
        if left[0] != "nodes":
            left, right, operator = right, left, SWAPPED.get(operator, operator)
        kind, text = right
        if kind == "string" and operator in ("=", "!="):
            return "boolean", f"({self.nodes(left)} {operator} {literal(text)})"
        if not NUMBER.fullmatch(text):
            return "boolean", "$never"
        number = f"xs:double({literal(text)})"
        some = f"some $n in {self.nodes(left)} satisfies local:number($n)"
        return "boolean", f"({some} {WORDS[operator]} {number})"

    def compared(self, left: tuple[str, str], operator: str, right: tuple[str, str]) -> str:
        word, kinds = WORDS[operator], {left[0], right[0]}
        as_text = operator in ("=", "!=") and "numeric" not in kinds
        each = []
        for name, (kind, text) in (("l", left), ("r", right)):
            items = text if kind == "nodes" else f"({text})"
            each.append(f"${name} in {items} ")
        value = {name: f"string(${name})" if as_text else f"local:any(${name})" for name in "lr"}
        return f"(some {each[0]}, {each[1]} satisfies {value['l']} {word} {value['r']})"

    def computed(self, operand: tuple[str, str]) -> tuple[str, str]:
        """The operand, with literals spelled."""
        kind, text = operand
        if kind == "string":
            return "text", literal(text)
        return ("numeric", f"xs:double({literal(text)})") if kind == "number" else operand

    def as_number(self, operand: tuple[str, str]) -> str:
        kind, text = self.computed(operand)
        return text if kind == "numeric" else f"local:number(string(({text})[1]))"

    def as_text(self, operand: tuple[str, str]) -> str:
        kind, text = self.computed(operand)
        return f"local:text({text})" if kind == "numeric" else f"string(({text})[1])"

    def sum(self) -> tuple[str, str]:
        left = self.product()
        while (operator := self.peek()) in ("+", "-"):
            self.take()
            left = "numeric", f"({self.as_number(left)} {operator} {self.as_number(self.product())})"
        return left

    def product(self) -> tuple[str, str]:
        left = self.union()
        while (operator := self.peek()) in ("*", "div", "mod"):
            self.take()
            left = "numeric", f"({self.as_number(left)} {operator} {self.as_number(self.union())})"
        return left

    def union(self) -> tuple[str, str]:
        operands = [self.primary()]
        while self.taken("|"):
            operands.append(self.primary())
        if len(operands) == 1:
            return operands[0]
        return "nodes", "(" + " | ".join(map(self.nodes, operands)) + ")"

    def primary(self) -> tuple[str, str]:
        token = self.peek()
        if token[:1] in ("'", '"'):
            return "string", self.take()[1:-1]
        if re.fullmatch(r"[0-9.]*[0-9][0-9.]*", token):
            return "number", self.take()
        if token == "-":
            self.take()
            _, number = self.primary()
            return "number", number[1:] if number.startswith("-") else f"-{number}"
        if token == "(":
            self.take()
            inside = self.either()
            self.take(")")
            if inside[0] != "nodes" or self.peek() not in ("[", "/", "//"):
                return inside
            text = f"({inside[1]}){self.predicates_here()}"
            while self.peek() in ("/", "//"):
                text += self.take() + self.step()
            return "nodes", text
        if token in ("not", "contains", "starts-with", "true", "false") and self.calls(token):
            return self.function()
        if token == "last" and self.calls(token):
            self.take()
            self.take("(")
            self.take(")")
            return "last", ""
        if token in ("count", "sum", "string", "number", "concat", "format-number") and self.calls(token):
            return self.value_function()
        if token == "$":
            before = self.at
            self.take()
            name = self.take()
            if self.kinds.get(name, "nodes") != "nodes":
                return self.computed((self.kinds[name], ""))[0], f"${name}"
            self.at = before
        return "nodes", self.path()

    def calls(self, name: str) -> bool:
        return re.compile(rf"\s*{name}\s*\(").match(self.text, self.at) is not None

    def function(self) -> tuple[str, str]:
        name = self.take()
        self.take("(")
        if name in ("true", "false"):
            self.take(")")
            return "boolean", "$never" if name == "false" else "not($never)"
        first = self.either()
        if name == "not":
            self.take(")")
            return "boolean", f"not({self.condition(first)})"
        self.take(",")
        _, text = self.either()
        self.take(")")
        return "boolean", f"{name}(string({self.nodes(first)}[1]), {literal(text)})"

    def value_function(self) -> tuple[str, str]:
        name = self.take()
        self.take("(")
        arguments = [self.either()]
        while self.taken(","):
            arguments.append(self.either())
        self.take(")")
        first = arguments[0]
        if name == "count":
            return "numeric", f"xs:double(count({first[1]}))"
        if name == "sum":
            return "numeric", f"sum(for $n in {first[1]} return local:number($n), 0e0)"
        if name == "number":
            return "numeric", self.as_number(first)
        if name == "format-number":
            return "text", f"format-number({self.as_number(first)}, {literal(arguments[1][1])})"
        if name == "string":
            return "text", self.as_text(first)
        return "text", f"concat({', '.join(map(self.as_text, arguments))})"

    def condition(self, operand: tuple[str, str]) -> str:
        kind, text = operand
        if kind == "numeric":
            return f"({text} ne 0 and {text} eq {text})"
        if kind == "text":
            return f"({text} ne '')"
        assert kind in ("nodes", "boolean"), operand
        return f"exists({text})" if kind == "nodes" else text

    def nodes(self, operand: tuple[str, str]) -> str:
        kind, text = operand
        assert kind == "nodes", operand
        return f"({text})"

    # ── paths ────────────────────────────────────────────────────────────────────────────────

    def path(self) -> str:
        parts = []
        if self.taken("$"):
            name = self.take()
            parts.append("$doc" if name in ("doc", "msg") else f"${name}")
            parts[0] += self.predicates_here()
            if self.peek() not in ("/", "//"):
                return parts[0]
            parts.append(self.take())
        elif self.peek() in ("/", "//"):
            parts += ["$doc", self.take()]
            if parts[-1] == "/" and not re.match(r"[\w@.*Q]", self.peek()):
                return "$doc"
        elif self.predicates == 0:
            parts.append("$doc/")
        parts.append(self.step())
        while self.peek() in ("/", "//"):
            parts += [self.take(), self.step()]
        return "".join(parts)

    def step(self) -> str:
        axis = ""
        if self.taken("@"):
            axis = "@"
        elif re.compile(r"\s*[\w-]+\s*::").match(self.text, self.at):
            axis = self.take() + self.take("::")
        token = self.take()
        if token in (".", ".."):
            return token
        if self.taken("("):
            self.take(")")
            test = f"{token}()"
        else:
            test = self.name(token)
        return axis + test + self.predicates_here()

    def predicates_here(self) -> str:
        parts = []
        while self.taken("["):
            self.predicates += 1
            kind, text = inside = self.either()
            if kind == "number":
                position = 1 <= float(text) < 1_000_000 and float(text).is_integer()
                parts.append(f"[{text}]" if position else "[$never]")
            elif kind == "last":
                parts.append("[last()]")
            else:
                parts.append(f"[{self.condition(inside)}]")
            self.predicates -= 1
            self.take("]")
        return "".join(parts)

    def name(self, token: str) -> str:
        """A name test with its URI."""
        if token.startswith("*"):
            return token
        if token.startswith("Q{"):
            return token.replace("&", "&amp;")
        prefix, _, local = token.rpartition(":")
        uri = self.scopes[-1][prefix] if prefix else ""
        return f"Q{{{uri.replace('&', '&amp;')}}}{local}"
