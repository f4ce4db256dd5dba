"""lxml confirms a sample of the answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

import tamis
from tamis.bench.measure import array

QUERIES = 1_000
DOCUMENTS = 50


@dataclass(frozen=True)
class Confirmation:
    """How many pairs were compared, how many of them match, and where lxml disagrees."""

    pairs: int
    matches: int
    differences: tuple[str, ...]


def confirm(index: tamis.Index, documents: Sequence[bytes], queries: Sequence[str]) -> Confirmation:
    """Compare what the whole index says with lxml, on queries and documents spread evenly.

    The index has the queries under their line numbers, as `measure.build` gives them.
    """
    chosen_documents = documents[:: max(1, len(documents) // DOCUMENTS)][:DOCUMENTS]
    lines = range(1, len(queries) + 1)[:: max(1, len(queries) // QUERIES)][:QUERIES]
    compiled = [(line, etree.XPath(queries[line - 1])) for line in lines]
    matched: Any = index.targets(index.match_batch(array(chosen_documents)))
    pairs = matches = 0
    differences: list[str] = []
    for number, (document, found) in enumerate(zip(chosen_documents, matched.to_pylist(), strict=True)):
        tree = etree.fromstring(document)
        targets = set(found)
        for line, query in compiled:
            expected = bool(query(tree))
            pairs += 1
            matches += expected
            if expected != (line in targets):
                differences.append(f"query {line}, document {number}: lxml says {expected}: {query.path}")
    return Confirmation(pairs, matches, tuple(differences))
