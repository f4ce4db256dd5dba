"""Random transformations over the whole language, biased towards what a document contains.

A block is grown around a *witness*, an element of some document that its binding path leads to; what its
template takes is found at or below it. Like random queries, each knows which productions it uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.helpers.random_documents import NAMESPACES, Element
from tests.helpers.random_queries import Grower

PRODUCTIONS = (
    # blocks
    "bare", "wrapped", "several-blocks", "where",
    "return-bound", "return-elements", "return-text", "return-element",
    # clauses
    "two-variables", "independent", "join", "let-nodes", "let-value",
    "order-text", "order-number", "order-descending", "order-empty-greatest",
    # computed content
    "nested-for", "if", "sequence", "concat", "arithmetic", "format-number", "computed-text",
    # content
    "nested-element", "empty-element",
    "text", "boundary-space", "kept-space", "reference", "section", "brace",
    "take-bound", "take-elements", "take-text", "count", "string",
    "take-attribute", "take-inner-attribute", "take-all-attributes",
    # attributes
    "attribute", "attribute-prefixed", "attribute-xml", "values", "value-count", "value-string", "value-text",
    # namespaces
    "name-prefixed", "default-namespace", "no-default-namespace", "declared-prefix", "rebound-prefix",
)  # fmt: skip

CLAUSES = PRODUCTIONS[PRODUCTIONS.index("two-variables") : PRODUCTIONS.index("nested-for")]
COMPUTED = PRODUCTIONS[PRODUCTIONS.index("nested-for") : PRODUCTIONS.index("nested-element")]
"""The productions that are evaluated tuple by tuple."""

# No `]]>` in plain text: before a CDATA section, Saxon changes their order.
TEXTS = {
    "text": ("t", " t ", "1", "é", "]]", 'it\'s "t"', "a\nb", "x\r\ny"),
    "kept-space": ("&#32;", "&#x20; ", "<![CDATA[ ]]>", "<![CDATA[]]> \n"),
    "reference": ("&lt;", "&amp;&gt;", "&#233;", "&#xA;t", "&quot;&apos;", "&#13;"),
    "section": ("<![CDATA[<t>&amp;{}]]>", "s<![CDATA[]]>", "<![CDATA[]]]>"),
    "brace": ("{{", "}}", "{{t}}", " {{ "),
}
PICTURES = ("0", "#,##0.00", "#.#", "0.0##;(0.0##)", "000,00", "0.0%")
VALUES = ("t", "", " t  t", "it''s", '"', "&lt;&amp;", "{{}}", "a\n\tb", "&#10;&#9;", "é")


@dataclass(frozen=True, slots=True)
class RandomTransformation:
    """A transformation and the productions it uses."""

    text: str
    productions: frozenset[str]


def transformation(random: Random, witnesses: list[Element], production: str) -> RandomTransformation:
    """One transformation that uses `production`; its blocks are grown around the witnesses."""
    for _ in range(2000):
        grower = _TransformationGrower(random, production)
        text = grower.transformation(witnesses)
        if production in grower.used:
            return RandomTransformation(text, frozenset(grower.used))
    raise AssertionError(f"no transformation with {production!r} was made")


class _TransformationGrower(Grower):
    """Grows one transformation."""

    def __init__(self, random: Random, favoured: str) -> None:
        super().__init__(random, favoured)
        self.variable = ""
        """The variable that a path can start with here."""

    def transformation(self, witnesses: list[Element]) -> str:
        random = self.random
        self.blocks = [random.choice(witnesses)]
        if self.chance(0.5, "bare"):
            self.use("bare")
            return self.block(self.blocks.pop())
        self.use("wrapped")
        if self.chance(0.3, "several-blocks"):
            self.use("several-blocks")
            self.blocks += random.choices(witnesses, k=random.choice((1, 1, 2)))
        return self.element(None, 0)

    # ── blocks ───────────────────────────────────────────────────────────────────────────────

    def flwor(self, witness: Element) -> str:
        """Several clauses. Templates and conditions start at any of the variables."""
        random = self.random
        text = f"for $t in {self.lead(self.path_along(witness.ancestry(), 1))[0]}"
        self.bound = ["$t"]
        if self.chance(0.6, "two-variables"):
            self.use("two-variables")
            text += f"{random.choice((', ', ' for '))}$u in {self.start(witness)}"
            self.bound.append("$u")
        if self.chance(0.3, "independent", "join"):
            self.use("independent")
            path = self.path_along(random.choice(self.around(witness)).ancestry(), 1)
            text += f"{random.choice((', ', ' for '))}$w in {path}"
            self.bound.append("$w")
        if self.chance(0.2, "let-nodes"):
            self.use("let-nodes")
            text += f" let $n := {self.start(witness)}"
            self.bound.append("$n")
        if self.chance(0.2, "let-value"):
            self.use("let-value")
            text += f" let $k := {self.computed(witness)} where $k != '2'"
        if self.chance(0.3, "where"):
            self.use("where")
            self.variable = random.choice(self.bound)
            text += f" where {self.where(witness)}"
        if len(self.bound) > 1 and self.chance(0.4, "join"):
            self.use("join")
            one, other = random.sample(self.bound, 2)
            leaves = ("/@*", "", "/*", "//text()", f"/{self.attribute_test(self.attribute_of(witness)[0])}")
            operator = random.choice(("=", "=", "!=", "<", ">="))
            text += f" where {one}{random.choice(leaves)} {operator} {other}{random.choice(leaves)}"
        if self.chance(0.4, "order-text", "order-number", "order-descending", "order-empty-greatest"):
            text += f" order by {self.order_key(witness)}"
            if random.random() < 0.3:
                text += f", {self.order_key(witness)}"
        self.variable = random.choice(self.bound)
        text += f" return {self.returned(witness)}"
        self.variable, self.bound = "", []
        return text

    bound: list[str] = []  # noqa: RUF012

    def start(self, witness: Element) -> str:
        self.variable = self.random.choice(self.bound)
        return self.below_variable(witness)

    def around(self, witness: Element) -> list[Element]:
        """The witness and what is below its ancestor."""
        return [witness, *witness.ancestry()[0].descendants()]

    def order_key(self, witness: Element) -> str:
        path = self.start(witness) + self.random.choice(("", "/@*", "/@x", "//text()"))
        if self.chance(0.4, "order-number"):
            self.use("order-number")
            key = self.random.choice((f"number({path})", f"count({path})"))
        else:
            self.use("order-text")
            key = self.random.choice((path, f"string({path})"))
        if self.chance(0.4, "order-descending"):
            self.use("order-descending")
            key += " descending"
        if self.chance(0.3, "order-empty-greatest"):
            self.use("order-empty-greatest")
            key += " empty greatest"
        return key

    def computed(self, witness: Element) -> str:
        """A string or a number."""
        path = self.start(witness) if self.bound else f"{self.variable}/*"
        kinds = ("concat", "arithmetic", "format-number", "computed-text")
        kind = self.favoured if self.favoured in kinds else self.random.choice(kinds)
        self.use(kind)
        if kind == "concat":
            return f"concat({path}, '-', count({path}))"
        if kind == "format-number":
            value = self.random.choice((f"number({path})", f"count({path}) * 1.25"))
            return f"format-number({value}, '{self.random.choice(PICTURES)}')"
        if kind == "arithmetic":
            other = self.random.choice(("2", f"count({path}/@*)"))
            return f"count({path}) {self.random.choice(('+', '-', '*'))} {other}"
        return f"string(({path})[{self.random.choice('12')}])"

    def computed_content(self, witness: Element) -> str:
        kinds = ("nested-for", "if", "sequence", "computed-text")
        kind = self.favoured if self.favoured in kinds else self.random.choice(kinds)
        if kind == "computed-text":
            return self.computed(witness)
        self.use(kind)
        path = self.start(witness)
        if kind == "nested-for":
            return f"for $z in {path} return {self.random.choice(('$z', 'string($z)', '<z>{ $z/@* }</z>'))}"
        if kind == "if":
            other = self.random.choice(("()", self.start(witness), "<none/>"))
            return f"if ({self.start(witness)}) then {path} else {other}"
        return (
            f"{path}, {self.computed(witness)}, {self.computed(witness)}, {self.random.choice((path, '7'))}"
        )

    def block(self, witness: Element) -> str:
        if self.chance(0.35, *CLAUSES, *COMPUTED):
            return self.flwor(witness)
        variable = self.random.choice(("$v", "$v", "$x", "$for", "$a-b"))
        text = f"for {variable} in {self.lead(self.path_along(witness.ancestry(), 1))[0]}"
        self.variable = variable
        if self.chance(0.35, "where"):
            self.use("where")
            text += f" where {self.where(witness)}"
        text += f"{self.random.choice((' ', '  ', chr(10)))}return {self.returned(witness)}"
        self.variable = ""
        return text

    def where(self, witness: Element) -> str:
        self.in_where = True
        condition = self.condition(witness, 1)
        self.in_where = False
        return condition

    in_where = False
    names_in_predicates = False

    def inner_path(self, element: Element, depth: int) -> tuple[str, str, str]:
        """In `where`, a path starts at the variable; in predicates of that path, it does not."""
        outer, self.in_where = self.in_where, False
        path, value, kind = super().inner_path(element, depth)
        self.in_where = outer
        if outer and not path.startswith("/"):
            path = self.variable + (path[1:] if path.startswith(".") else f"/{path}")
        return path, value, kind

    def returned(self, witness: Element) -> str:
        if self.chance(0.2, "return-bound"):
            self.use("return-bound")
            return self.variable
        if self.chance(0.2, "return-elements", "return-text"):
            path = self.below_variable(witness)
            if self.chance(0.3, "return-text"):
                self.use("return-text")
                return f"{path}{self.random.choice(('/', '//'))}text()"
            self.use("return-elements")
            return path
        self.use("return-element")
        return self.element(witness, 0)

    def below_variable(self, witness: Element) -> str:
        """A path to elements below the bound one; now and then to itself."""
        inner = list(witness.descendants())
        if not inner:
            return self.variable + self.random.choice(("", "/*", "//*", "/a"))
        line = self.random.choice(inner).ancestry()[len(witness.ancestry()) :]
        return self.variable + self.path_along(line, 1)

    # ── elements ─────────────────────────────────────────────────────────────────────────────

    def element(self, witness: Element | None, depth: int) -> str:
        """A constructed element; outside a block there is no witness."""
        name = self.constructed_name()
        attributes = self.declarations(":" in name) + self.attributes(witness)
        self.random.shuffle(attributes)
        tag = f"<{name}" + "".join(f"{self.random.choice((' ', chr(10)))}{text}" for text in attributes)
        content = self.content(witness, depth)
        if not content and self.chance(0.7, "empty-element"):
            self.use("empty-element")
            return f"{tag}/>"
        return f"{tag}>{content}</{name}{self.random.choice(('', '', ' '))}>"

    def constructed_name(self) -> str:
        if self.chance(0.12, "name-prefixed"):
            self.use("name-prefixed")
            return f"{self.random.choice(tuple(NAMESPACES))}:o"
        return self.random.choice(("o", "n", "a"))

    def declarations(self, prefixed: bool) -> list[str]:
        made = []
        if self.chance(0.12, "default-namespace", "no-default-namespace"):
            # What `xmlns=""` does to an element with a prefix, Saxon answers one way or the other.
            uri = self.random.choice(("urn:x", "urn:x", "urn:p", "urn:p" if prefixed else ""))
            self.use("default-namespace" if uri else "no-default-namespace")
            made.append(f"xmlns='{uri}'")
        if self.chance(0.08, "declared-prefix"):
            self.use("declared-prefix")
            made.append(f"xmlns:k='{self.random.choice(('urn:k', 'urn:p'))}'")
        if self.chance(0.06, "rebound-prefix"):
            self.use("rebound-prefix")
            prefix = self.random.choice(("p", "q", "r", "s"))
            made.append(f'xmlns:{prefix}="{self.random.choice(("urn:z", "urn:p", "urn:q"))}"')
        return made

    def attributes(self, witness: Element | None) -> list[str]:
        kinds = ["attribute"] * 2 + ["attribute-prefixed", "attribute-xml"]
        names = {"attribute": ("m", "k"), "attribute-prefixed": ("p:m",), "attribute-xml": ("xml:lang",)}
        made: dict[str, str] = {}
        while self.chance(0.25, *names, "values", "value-count", "value-string", "value-text"):
            kind = self.favoured if self.favoured in names else self.random.choice(kinds)
            self.use(kind)
            quote = self.random.choice("'\"")
            value = "".join(self.value(witness) for _ in range(self.random.choice((1, 1, 2))))
            if quote == '"':
                value = value.replace("''", "'").replace('"', '""')
            made[self.random.choice(names[kind])] = quote + value + quote
        return [f"{name}={value}" for name, value in made.items()]

    def value(self, witness: Element | None) -> str:
        """A part of an attribute value, for single quotes."""
        taken = ("values", "value-count", "value-string")
        if witness is None or not self.chance(0.6, *taken):
            self.use("value-text")
            return self.random.choice(VALUES)
        way = self.favoured if self.favoured in taken else self.random.choice(taken)
        self.use(way)
        # Its quotes would be doubled with the others: a predicate is tried elsewhere.
        path = self.random.choice(
            (self.variable, f"{self.variable}/*", f"{self.variable}//text()", f"{self.variable}/@*")
        )
        if way != "values":
            path = f"{'count' if way == 'value-count' else 'string'}({path})"
        return f"{{ {path} }}"

    # ── content ──────────────────────────────────────────────────────────────────────────────

    def content(self, witness: Element | None, depth: int) -> str:
        parts = [] if witness is None else self.taken_attributes(witness)
        count = self.random.choice((0, 1, 1, 2, 3)) if depth < 3 else 0
        if witness is None and depth == 0:
            # Outside, every block must be somewhere.
            count = max(count, 1)
        parts += [self.part(witness, depth) for _ in range(count)]
        if witness is None and depth == 0:
            parts += [self.enclosed_block() for _ in range(len(self.blocks))]
        spaced = []
        for part in parts:
            if self.chance(0.3, "boundary-space"):
                self.use("boundary-space")
                spaced.append(self.random.choice((" ", "\n  ", "\t")))
            spaced.append(part)
        return "".join(spaced)

    def part(self, witness: Element | None, depth: int) -> str:
        if self.chance(0.25, "nested-element"):
            self.use("nested-element")
            return self.element(witness, depth + 1)
        if self.chance(0.25, *TEXTS):
            kind = self.favoured if self.favoured in TEXTS else self.random.choice(tuple(TEXTS))
            self.use(kind)
            return self.random.choice(TEXTS[kind])
        if witness is None:
            return self.enclosed_block() if self.blocks else ""
        return f"{{{self.random.choice(('', ' '))}{self.taken(witness)} }}"

    def enclosed_block(self) -> str:
        return f"{{ {self.block(self.blocks.pop())} }}"

    def taken(self, witness: Element) -> str:
        if self.bound:
            self.variable = self.random.choice(self.bound)
            if self.chance(0.4, *COMPUTED):
                return self.computed_content(witness)
        ways = ("take-elements", "take-bound", "take-text", "count", "string")
        way = self.random.choice(("take-elements", "take-elements", *ways))
        if self.favoured in ways and self.random.random() < 0.7:
            way = self.favoured
        self.use(way)
        if way == "take-bound":
            return self.variable
        path = self.below_variable(witness) if self.random.random() < 0.7 else self.variable
        if way == "take-text":
            return f"{path}{self.random.choice(('/', '//'))}text()"
        if way == "take-elements":
            return path if path != self.variable else f"{path}/*"
        leaf = self.random.choice(("", "", "/@x", "/text()", "//@*"))
        return f"{way}({path}{leaf})"

    def taken_attributes(self, witness: Element) -> list[str]:
        taken = ("take-attribute", "take-inner-attribute", "take-all-attributes")
        if not self.chance(0.25, *taken):
            return []
        way = self.favoured if self.favoured in taken else self.random.choice(taken)
        self.use(way)
        if way == "take-all-attributes":
            return [f"{{ {self.variable}/{self.random.choice(('@*', '@*:x'))} }}"]
        path = self.below_variable(witness) if way == "take-inner-attribute" else self.variable
        name, _ = self.attribute_of(witness)
        return [f"{{ {path}/{self.attribute_test(name)} }}"]
