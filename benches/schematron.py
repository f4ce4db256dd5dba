"""How much of Schematron rules the language takes: `python -m benches.schematron FOLDER…`.

Each context and each distinct test of all `*.sch` files below a folder is checked as a filter: a context as
`//context`, a test as `//*[test]`. What a `let` or a parameter of a pattern names is put in its place.
Prints, for each folder, the share that is accepted and the most frequent reasons of refusals with an example.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

import tamis

REASONS = 10
SUBSTITUTIONS = 5
"""A `let` may name others, so often."""


class RuleSet:
    """The rules of all files below a folder."""

    def __init__(self, folder: Path) -> None:
        parser = etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True)
        self.files = [etree.parse(path, parser).getroot() for path in sorted(folder.rglob("*.sch"))]
        self.prefixes: dict[str, str] = {}
        self.values: dict[str, str] = {}
        for root in self.files:
            for element in root.iter("{*}ns"):
                if element.get("uri"):
                    self.prefixes[element.get("prefix", "")] = element.get("uri", "")
            self.values |= named(root, "{*}let") | named(root, "{*}param")

    def queries(self) -> Iterator[str]:
        for root in self.files:
            for rule in root.iter("{*}rule"):
                values = self.values | named(rule, "{*}let")
                if context := rule.get("context"):
                    text = substituted(context, values)
                    yield text if text.lstrip().startswith(("/", "(")) else f"//{text}"
                for test in rule.iter("{*}assert", "{*}report"):
                    yield f"//*[{substituted(test.get('test', ''), values)}]"


def named(root: etree._Element, tag: str) -> dict[str, str]:
    found = ((element.get("name"), element.get("value")) for element in root.iter(tag))
    return {name: value for name, value in found if name and value}


def substituted(text: str, values: dict[str, str]) -> str:
    for _ in range(SUBSTITUTIONS):
        text = re.sub(
            r"\$([\w.-]+)", lambda found: f"({values[found[1]]})" if found[1] in values else found[0], text
        )
    return text


def report(folder: Path) -> None:
    rules = RuleSet(folder)
    queries = set(rules.queries())
    refused: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for query in sorted(queries):
        try:
            tamis.check(query, rules.prefixes)
        except tamis.QueryError as error:
            reason = f"{error.code}: {error.reason}"
            refused[reason] += 1
            examples.setdefault(reason, query)
    accepted = len(queries) - refused.total()
    print(f"{folder}: {accepted:,} of {len(queries):,} accepted ({accepted / max(len(queries), 1):.1%})")
    for reason, count in refused.most_common(REASONS):
        print(f"  {count:6,}  {reason}\n          {examples[reason][:120]}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        report(Path(name))
