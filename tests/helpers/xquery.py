"""Transformations as XQuery 3.1 spells them, so that Saxon can be asked what they make of messages.

Paths, order and construction mean the same in both. Comparisons and functions do not: they are spelled out
as XPath 1.0 defines them. Names are expanded, since a constructed `xmlns` would change those of paths too.
"""

import re
from collections.abc import Callable, Mapping

PROLOG = r"""
declare boundary-space strip;
declare copy-namespaces preserve, inherit;
declare namespace output = "http://www.w3.org/2010/xslt-xquery-serialization";
declare option output:omit-xml-declaration "yes";
declare option output:indent "no";
declare function local:number($node) as xs:double {
  if (matches(string($node), '^[ \t\n\r]*-?([0-9]+(\.[0-9]*)?|\.[0-9]+)[ \t\n\r]*$'))
  then number($node) else number('NaN')
};
declare variable $messages external;
declare variable $never := exists($messages/self::text());
"""
"""`$never` is false, and Saxon does not know: of a path that it knows to be empty, it refuses conditions."""

XML = "http://www.w3.org/XML/1998/namespace"
NUMBER = re.compile(r"[ \t\n\r]*-?([0-9]+(\.[0-9]*)?|\.[0-9]+)[ \t\n\r]*")
WORDS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

TOKEN = re.compile(
    r"""\s*(?P<token>
        '[^']*' | "[^"]*"
      | [0-9]+(?:\.[0-9]*)? | \.[0-9]+
      | // | :: | != | <= | >= | \.\.
      | Q\{[^}]*\}(?:\*|[\w.-]+)
      | (?!\d)[\w][\w.-]*(?::(?!:)(?:\*|[\w.-]+))?
      | [][()@,|=<>.*$/{}-]
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
    declared = "".join(
        f"declare namespace {prefix} = {_literal(uri)};\n" for prefix, uri in namespaces.items()
    )
    return f"""{declared}{PROLOG}
<all>{{ for $doc in $messages return
  (: Named twice, what is made is a tree before it is written: an error can still be caught. :)
  try {{
    let $made := if ({bound}) then <oracle>{{ {output} }}</oracle> else <nothing/>
    return ($made, $made[2])
  }}
  catch * {{ <error>{{ local-name-from-QName($err:code) }}</error> }}
}}</all>"""


class _Spelling:
    """Reads a transformation from left to right, and gives its parts as XQuery."""

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        self.text = text
        self.at = 0
        self.scopes: list[Mapping[str, str]] = [{"xml": XML, **namespaces}]
        self.predicates = 0
        self.bound: list[str] = []
        """For each block, what it binds."""

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
        return self.block() if self.peek() == "for" else self.constructor()

    def block(self) -> str:
        self.take("for")
        self.take("$")
        variable = self.take()
        self.take("in")
        clauses = f"for ${variable} in {self.nodes(self.either())}"
        if self.taken("where"):
            clauses += f" where {self.condition(self.either())}"
        self.bound.append(f"{clauses} return ${variable}")
        self.take("return")
        returned = self.path() if self.peek() == "$" else self.constructor()
        return f"{clauses} return {returned}"

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
        """A character, or what stands in braces."""
        character = self.text[self.at]
        self.at += 1
        if character != "{":
            return character
        enclosed = self.enclosed()
        self.take("}")
        return f"{{ {enclosed} }}"

    def enclosed(self) -> str:
        if self.peek() == "for":
            return self.block()
        if self.peek() == "$":
            return self.path()
        function = self.take("count", "string")
        self.take("(")
        nodes = self.path()
        self.take(")")
        return f"count({nodes})" if function == "count" else f"string(({nodes})[1])"

    # ── conditions ───────────────────────────────────────────────────────────────────────────

    # An operand is what it is (`nodes`, `boolean`, `string`, `number`) and how it is spelled.

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
        left = self.union()
        if self.peek() not in WORDS:
            return left
        operator = self.take()
        right = self.union()
        if left[0] != "nodes":
            left, right, operator = right, left, SWAPPED.get(operator, operator)
        kind, literal = right
        if kind == "string" and operator in ("=", "!="):
            return "boolean", f"({self.nodes(left)} {operator} {_literal(literal)})"
        if not NUMBER.fullmatch(literal):
            return "boolean", "$never"
        number = f"xs:double({_literal(literal)})"
        some = f"some $n in {self.nodes(left)} satisfies local:number($n)"
        return "boolean", f"({some} {WORDS[operator]} {number})"

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
            return inside
        if token in ("not", "contains", "starts-with", "true", "false") and self.calls(token):
            return self.function()
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
        _, literal = self.either()
        self.take(")")
        return "boolean", f"{name}(string({self.nodes(first)}[1]), {_literal(literal)})"

    def condition(self, operand: tuple[str, str]) -> str:
        kind, text = operand
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
        if token == ".":
            return "."
        if self.taken("("):
            self.take(")")
            test = f"{token}()"
        else:
            test = self.name(token)
        parts = [axis + test]
        while self.taken("["):
            self.predicates += 1
            kind, text = inside = self.either()
            if kind == "number":
                position = 1 <= float(text) < 1_000_000 and float(text).is_integer()
                parts.append(f"[{text}]" if position else "[$never]")
            else:
                parts.append(f"[{self.condition(inside)}]")
            self.predicates -= 1
            self.take("]")
        return "".join(parts)

    def name(self, token: str) -> str:
        """A name test with its URI."""
        if token == "*":
            return token
        if token.startswith("Q{"):
            return token.replace("&", "&amp;")
        prefix, _, local = token.rpartition(":")
        uri = self.scopes[-1][prefix] if prefix else ""
        return f"Q{{{uri.replace('&', '&amp;')}}}{local}"


def _literal(value: str) -> str:
    """A string literal: XQuery reads references in it, and doubled quotes."""
    return "'" + value.replace("&", "&amp;").replace("'", "''") + "'"
