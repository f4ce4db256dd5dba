"""The same queries, spelled as rules are: `count()`, `local-name()`, `..`, `= ('a')`, `normalize-space()`."""

import re
from collections.abc import Iterator, Sequence
from random import Random

LITERAL = re.compile(r"""("[^"]*"|'[^']*')""")
EQUALITY = re.compile(r"""\[(@[\w.:-]+|text\(\)) = ("[^"]*"|'[^']*'|-?[\d.]+)\]""")
NESTED = re.compile(r"\[(\.//)?([A-Za-z*][\w.*/-]*)\](?=(\[?))")
STEP = re.compile(r"(?<=/)([A-Za-z][\w.-]*)(?=[/\[]|$)")

NAMES = 0.2
"""How many of the steps ask for `local-name()`."""


def respelled(queries: Sequence[str], *, seed: str) -> Iterator[str]:
    """Each query in another spelling."""
    random = Random(f"respelling {seed}")
    for query in queries:
        yield _names(
            NESTED.sub(
                lambda found: _nested(random, found),
                EQUALITY.sub(lambda found: _equality(random, found), query),
            ),
            random,
        )


def _equality(random: Random, found: re.Match[str]) -> str:
    subject, literal = found.groups()
    is_text = literal[0] in "\"'"
    if subject.startswith("@") and is_text and " ".join(literal[1:-1].split()) == literal[1:-1] != "":
        return random.choice((f"[normalize-space({subject}) = {literal}]", f"[{subject} = ({literal})]"))
    return f"[({literal}) = {subject}]"


def _nested(random: Random, found: re.Match[str]) -> str:
    descends, path, next_predicate = found.groups()
    # After `..` there are no predicates.
    if descends or "//" in path or next_predicate or random.random() < 0.5:
        return f"[count({descends or ''}{path}) > 0]"
    return f"/{path}" + "/.." * (1 + path.count("/"))


def _names(query: str, random: Random) -> str:
    def name(found: re.Match[str]) -> str:
        return f"*[local-name() = '{found[1]}']" if random.random() < NAMES else found[1]

    parts = LITERAL.split(query)
    parts[::2] = [STEP.sub(name, part) for part in parts[::2]]
    return "".join(parts)
