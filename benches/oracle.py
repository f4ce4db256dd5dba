"""lxml confirms a sample of the answers."""

from collections.abc import Sequence
from typing import Any, TypeVar

from lxml import etree

import tamis
from benches.checks import Confirmation
from tamis.bench.measure import array

T = TypeVar("T")

QUERIES = 1_000
DOCUMENTS = 50


def confirm(index: tamis.Index, documents: Sequence[bytes], queries: Sequence[str]) -> Confirmation:
    """Compare the answers of the whole index with lxml.

    Documents are spread evenly. Half of the queries are among those that match one of them, as far as
    there are so many, because at random hardly any would; the others are spread evenly.
    The index has the queries under their line numbers, as `measure.build` gives them. Those that lxml cannot
    evaluate are left out.
    """
    chosen = spread(documents, DOCUMENTS)
    matched: Any = index.targets(index.match_batch(array(chosen)))
    found = [set(targets) for targets in matched.to_pylist()]
    lines = set(spread(sorted(set().union(*found)), QUERIES // 2))
    others = [line for line in range(1, len(queries) + 1) if line not in lines]
    lines.update(spread(others, QUERIES - len(lines)))
    paths = [(line, path) for line in sorted(lines) if (path := compiled(queries[line - 1])) is not None]
    pairs = matches = 0
    differences: list[str] = []
    for number, (document, targets) in enumerate(zip(chosen, found, strict=True)):
        tree = etree.fromstring(document)
        for line, query in paths:
            expected = bool(query(tree))
            pairs += 1
            matches += expected
            if expected != (line in targets):
                differences.append(f"query {line}, document {number}: lxml says {expected}: {query.path}")
    return Confirmation(pairs, matches, tuple(differences))


def compiled(query: str) -> etree.XPath | None:
    """lxml's form of a query; none if it asks for more than XPath 1.0."""
    try:
        path = etree.XPath(query)
        path(etree.Element("any"))
    except etree.XPathError:
        return None
    return None if "matches(" in query else path


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """At most `count` of the items, evenly spaced."""
    step = max(1.0, len(items) / max(count, 1))
    return [items[int(at * step)] for at in range(min(count, len(items)))]
