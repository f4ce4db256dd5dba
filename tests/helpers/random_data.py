"""Random messages, local data and queries that join them, and the same queries as Saxon has to be asked.

Few names and few values, so that about half of the joins find something. Comparisons of numbers mean
something else in XPath 2.0: for Saxon they are spelled out, and data are variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from xml.sax.saxutils import escape, quoteattr

COMMON = ("1", "2", "a")
VALUES = (*COMMON * 7, "01", " 1", "2.0", "11", "011", "A", "a ", "", "ab", "<&>")
NAMES = ("k", "g")

DATA = ("c", "o", "w")
"""Two collections, and a document `o`; in this order."""

PRODUCTIONS = (
    *("filter equal", "filter not", "filter unequal", "filter less", "filter exists", "filter count"),
    *("filter string", "filter some", "filter every", "filter position", "filter message", "filter mirrored"),
    *(
        "tuples predicate",
        "tuples where",
        "tuples where message",
        "tuples let",
        "tuples order",
        "tuples chain",
    ),
    *(
        "tuples nested",
        "tuples data first",
        "braces nodes",
        "braces count",
        "braces if",
        "axes",
        "copies",
        "mixed",
    ),
    *("message filter", "message tuples", "message where", "message data"),
)


@dataclass(frozen=True, slots=True)
class Both:
    """An expression, and what Saxon is asked instead."""

    text: str
    saxon: str

    def __add__(self, other: Both | str) -> Both:
        if isinstance(other, str):
            other = Both(other, other)
        return Both(self.text + other.text, self.saxon + other.saxon)

    def __radd__(self, other: str) -> Both:
        return Both(other + self.text, other + self.saxon)


@dataclass(frozen=True, slots=True)
class Query:
    production: str
    text: str
    saxon: str
    is_filter: bool


def message(random: Random) -> bytes:
    """A message: elements `s` with a key each, some of them in others."""
    return f"<m>{_items(random, 's', random.choice((0, 2, 3)))}</m>".encode()


def record(random: Random) -> bytes:
    """A record: an element `r`, seldom `t`, with values at attributes and elements."""
    name = random.choice(("r", "r", "r", "r", "r", "t"))
    before = "<!-- -->" if random.random() < 0.1 else ""
    return (before + _element(random, name, _leaves(random))).encode()


def document(random: Random) -> bytes:
    """A document of several records."""
    return f"<d>{_items(random, 'r', 1)}</d>".encode()


def _items(random: Random, name: str, least: int) -> str:
    items = []
    for _ in range(random.randint(least, 5)):
        inner = _items(random, name, 0) if random.random() < 0.1 else ""
        items.append(_element(random, name, _leaves(random) + inner))
    return "".join(items)


def _element(random: Random, name: str, content: str) -> str:
    names = [name for name in NAMES if random.random() < 0.8]
    attributes = "".join(f" {name}={quoteattr(random.choice(VALUES))}" for name in names)
    return f"<{name}{attributes}>{content}</{name}>"


def _leaves(random: Random) -> str:
    leaves = []
    for _ in range(random.randint(1, 3)):
        value = escape(random.choice(VALUES))
        if random.random() < 0.05:
            value += "<!-- -->" + escape(random.choice(VALUES))
        leaf = f"<n>{value}</n>"
        leaves.append(f"<p>{leaf}</p>" if random.random() < 0.2 else leaf)
    return "".join(leaves)


def query(random: Random, production: str) -> Query:
    """A query that a production makes."""
    made = _Maker(random).make(production)
    is_filter = "filter" in production
    return Query(production, made.text, made.saxon, is_filter)


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random

    def make(self, production: str) -> Both:
        made = getattr(self, production.replace(" ", "_"))()
        assert isinstance(made, Both)
        return made

    def key(self) -> str:
        """A path from a record, or an item of a message, to values."""
        rare = ("n/text()", "p/n", ".//n", "@*", "*", "p", "(n | @k)", "n[1]")
        return (
            self.random.choice(("@k", "@g", "n")) if self.random.random() < 0.7 else self.random.choice(rare)
        )

    def literal(self) -> Both:
        number = self.random.choice(("1", "2", "11"))
        values = [value for value in VALUES if value != "<&>"]
        text = "'" + self.random.choice(values) + "'"
        return Both(text, text) if self.random.random() < 0.7 else Both(number, f"number('{number}')")

    def message_path(self) -> Both:
        """A path of the message, from anywhere."""
        return Both("$msg", "$doc") + f"//s/{self.key()}"

    def data(self, outer: Both | None = None, depth: int = 0) -> Both:
        """Nodes of local data. With `outer`, predicates may compare with it."""
        name = self.random.choice(DATA)
        function = "doc" if name == "o" else "collection"
        start = Both(f"{function}('{name}')", f"$data-{name}")
        steps = ("//r", "/d/r") if name == "o" else ("/r",) * 6 + ("/*", "/*", "/t", "//n/parent::*", "//p")
        made = start + self.random.choice(steps)
        for _ in range(self.random.choice((0, 0, 1, 1, 1, 1, 2))):
            made = made + "[" + self.predicate(outer, depth) + "]"
        return made

    def predicate(self, outer: Both | None, depth: int) -> Both:
        """A predicate of a record."""
        random = self.random
        others = [self.literal(), self.message_path()]
        if outer is not None:
            others += [outer, outer, outer]
        if depth == 0:
            others.append(self.data(None, 1) + f"/{self.key()}")
        other, key = random.choice(others), self.key()
        shape = random.choice(
            ("equal",) * 8 + ("mirrored", "unequal", "less", "not", "or", "and", "root", "at")
        )
        match shape:
            case "equal":
                return equal(Both(key, key), other)
            case "mirrored":
                return equal(other, Both(key, key))
            case "unequal":
                return unequal(Both(key, key), other)
            case "less":
                return less(Both(key, key), other)
            case "not":
                return "not(" + equal(Both(key, key), other) + ")"
            case "or":
                again = equal(self.both(self.key()), self.literal())
                return equal(Both(key, key), other) + " or " + again
            case "and":
                return equal(Both(key, key), other) + " and " + self.random.choice(("@k", "n", "*"))
            case "root":
                return equal(self.both("/*/" + key), other)
            case _:
                return self.both(random.choice(("1", "2", "last()")))

    def both(self, text: str) -> Both:
        return Both(text, text)

    # Filters.

    def filter_equal(self) -> Both:
        return f"//s[{self.key()} = " + self.data() + f"/{self.key()}]"

    def filter_mirrored(self) -> Both:
        return "//s[" + self.data() + f"/{self.key()} = {self.key()}]"

    def filter_not(self) -> Both:
        return f"//s[not({self.key()} = " + self.data() + f"/{self.key()})]"

    def filter_unequal(self) -> Both:
        return f"//s/{self.key()} != " + self.data() + f"/{self.key()}"

    def filter_less(self) -> Both:
        return less(self.both(f"//s/{self.key()}"), self.data() + f"/{self.key()}")

    def filter_exists(self) -> Both:
        return self.random.choice(("", "//s and ", "not(//t) and ")) + (
            "exists(" + self.data(self.both("//s/@k")) + ")"
        )

    def filter_count(self) -> Both:
        return "count(" + self.data() + ") > " + self.random.choice(("count(//s)", "0", "1"))

    def filter_string(self) -> Both:
        data = self.data()
        key = self.key()
        return (
            Both(f"string({data.text}/{key})", f"string(({data.saxon}/{key})[1])")
            + " = "
            + f"//s/{self.key()}"
        )

    def filter_some(self) -> Both:
        inner = self.data(self.both(f"$s/{self.key()}"))
        condition = equal(self.both(f"$r/{self.key()}"), self.both(f"$s/{self.key()}"))
        return "some $s in //s, $r in " + inner + " satisfies " + condition

    def filter_every(self) -> Both:
        inner = self.data(self.both(f"$s/{self.key()}"))
        return "every $s in //s satisfies exists(" + inner + ")"

    def filter_position(self) -> Both:
        return "(" + self.data() + f")[2]/{self.key()} = //s/{self.key()}"

    def filter_message(self) -> Both:
        """`$msg` in a predicate of an item: the whole message."""
        return "//s[" + self.data() + f"/{self.key()} = " + self.message_path() + "]"

    # Tuples.

    def joined(self) -> Both:
        return "for $s in //s, $r in " + self.data(self.both(f"$s/{self.key()}"))

    def result(self, *values: str) -> Both:
        return self.both("<x>{ " + ", ".join(values) + " }</x>")

    def tuples_predicate(self) -> Both:
        return self.joined() + " return " + self.result("$s/@k", "$r/n", "count($r/*)")

    def tuples_where(self) -> Both:
        return (
            "for $s in //s, $r in "
            + self.data()
            + " where "
            + self.condition()
            + " return "
            + self.result("$r/@*")
        )

    def condition(self) -> Both:
        condition = equal(self.both(f"$r/{self.key()}"), self.both(f"$s/{self.key()}"))
        match self.random.randrange(6):
            case 0:
                return condition + " and " + equal(self.both(f"$r/{self.key()}"), self.literal())
            case 1:
                return "not(" + condition + ")"
            case 2:
                return condition + " or " + equal(self.both(f"$s/{self.key()}"), self.literal())
            case 3:
                return equal(self.both(f"$r[{self.key()}]/n"), self.both(f"$s/{self.key()}"))
            case _:
                return condition

    def tuples_where_message(self) -> Both:
        """An absolute path outside of predicates is of the message; `$msg` always is."""
        other = self.random.choice((self.both(f"//s/{self.key()}"), self.message_path()))
        condition = equal(self.both(f"$r/{self.key()}"), other)
        return (
            "for $s in //s, $r in " + self.data() + " where " + condition + " return " + self.result("$r/n")
        )

    def tuples_let(self) -> Both:
        data = self.data(self.both(f"$s/{self.key()}"))
        return (
            "for $s in //s let $r := " + data + " where $r return " + self.result("$s/@k", "$r/@k/string()")
        )

    def tuples_order(self) -> Both:
        order = self.random.choice(("", " descending"))
        return (
            self.joined()
            + " order by string($r/@k)"
            + order
            + " return "
            + self.result("$r/n", "$s/@k/string()")
        )

    def tuples_chain(self) -> Both:
        third = self.data(self.both(f"$r/{self.key()}"), 1)
        return self.joined() + " for $q in " + third + " return " + self.result("$q/n", "count($r/n)")

    def tuples_nested(self) -> Both:
        data = self.data(self.both(f"$s/{self.key()}"))
        return "for $s in //s return <x>{ for $r in " + data + " return <y>{ $r/@*, $s/n }</y> }</x>"

    def tuples_data_first(self) -> Both:
        key = self.key()
        condition = equal(self.both(key), self.both(f"$r/{self.key()}"))
        return (
            "for $r in "
            + self.data()
            + " for $s in //s["
            + condition
            + "] return "
            + self.result("$r/n", "$s/n")
        )

    def braces_nodes(self) -> Both:
        return "for $s in //s return <x>{ " + self.data(self.both(f"$s/{self.key()}")) + "/n }</x>"

    def braces_count(self) -> Both:
        data = self.data(self.both(f"$s/{self.key()}"))
        return "for $s in //s return <x n='{ count(" + data + ") }'>{ $s/@g/string() }</x>"

    def braces_if(self) -> Both:
        data = self.data(self.both(f"$s/{self.key()}"))
        return "for $s in //s return if (" + data + ") then <y/> else <x>{ $s/n }</x>"

    def axes(self) -> Both:
        steps = (
            "..",
            "ancestor::*",
            "ancestor-or-self::node()",
            "following::n",
            "preceding-sibling::*",
            "n/..",
            ".//n",
        )
        step = self.random.choice(steps)
        return self.joined() + " return <x n='{ count($r/" + step + ") }'>{ $r/" + step + "/@k/string() }</x>"

    def copies(self) -> Both:
        return self.joined() + " return <x>{ $r/../node(), $s }</x>"

    # Joins within the message.

    def inner(self, equality: Both) -> Both:
        """Items of the message by an equality, with other predicates and steps around it."""
        path = self.random.choice(("//s", "/m/s", "/m//s", "$msg//s"))
        before = self.random.choice(("", "", "[n]", "[@k]"))
        after = self.random.choice(("", "", "", "[@g]", "[n = $s/n]", "[2]"))
        step = self.random.choice(("", "", "", "/n", "/.."))
        start = self.both(path.removeprefix("$msg"))
        if path.startswith("$msg"):
            start = Both("$msg", "$doc") + start
        return start + before + "[" + equality + "]" + after + step

    def message_equality(self) -> Both:
        own, other = self.both(self.key()), self.both(f"$s/{self.key()}")
        return equal(own, other) if self.random.random() < 0.7 else equal(other, own)

    def message_filter(self) -> Both:
        condition = equal(self.both(f"$r/{self.key()}"), self.both(f"$s/{self.key()}"))
        return "some $s in //s[@k], $r in " + self.inner(self.message_equality()) + " satisfies " + condition

    def message_tuples(self) -> Both:
        return (
            "for $s in //s, $r in "
            + self.inner(self.message_equality())
            + " return "
            + self.result("$r/n", "$s/@k")
        )

    def message_where(self) -> Both:
        condition = equal(self.both(f"$r/{self.key()}"), self.both(f"$s/{self.key()}"))
        data = self.random.choice(("//s", "//s[n]", "/m/s", "//s/n/..", "//s/n"))
        return f"for $s in //s, $r in {data} where " + condition + " return " + self.result("$r/@*", "$s/n")

    def message_data(self) -> Both:
        """Items that a record names."""
        condition = equal(self.both(self.key()), self.both(f"$r/{self.key()}"))
        return (
            self.joined() + " for $q in //s[" + condition + "] return " + self.result("$q/n", "count($r/n)")
        )

    def mixed(self) -> Both:
        """Nodes of the message and of records in one set: the message's are first."""
        return self.joined() + " return <x>{ ($r | $s)/n, count($r/.. | $s/.. | $s) }</x>"


def is_number(operand: Both) -> bool:
    return operand.saxon.startswith("number(")


def equal(left: Both, right: Both) -> Both:
    return compared(left, "=", "eq", right)


def unequal(left: Both, right: Both) -> Both:
    return compared(left, "!=", "ne", right)


def compared(left: Both, operator: str, saxon: str, right: Both) -> Both:
    """Two operands: as numbers if one of them is a number, else as strings."""
    text = f"{left.text} {operator} {right.text}"
    if is_number(left) or is_number(right):
        nodes, number = (right, left) if is_number(left) else (left, right)
        return Both(text, f"(some $l in {nodes.saxon} satisfies local:any($l) {saxon} {number.saxon})")
    return Both(text, f"{left.saxon} {operator} {right.saxon}")


def less(left: Both, right: Both) -> Both:
    """Always as numbers."""
    condition = "some $l in {}, $m in {} satisfies local:any($l) lt local:any($m)"
    return Both(f"{left.text} < {right.text}", f"({condition.format(left.saxon, right.saxon)})")
