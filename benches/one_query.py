"""One query on one document, beside lxml's compiled XPath: both on a tree that is parsed already."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from lxml import etree

import tamis
from benches.oracle import compiled, spread
from tamis.bench.measure import array, timed
from tamis.engine import read_all

PAIRS = 40
"""Pairs of a query and a document that it matches."""
TIMES = 100
"""How often each is evaluated: as one batch, and one after the other."""
ROUNDS = 9


def times_faster_than_lxml(index: tamis.Index, documents: Sequence[bytes], queries: Sequence[str]) -> float:
    """How many times longer lxml takes in total; of each time the shortest round counts."""
    matched: Any = index.targets(index.match_batch(array(documents)))
    pairs = [
        (document, line)
        for document, lines in zip(documents, matched.to_pylist(), strict=True)
        for line in lines or ()
    ]
    ours = theirs = 0.0
    for document, line in spread(pairs, PAIRS):
        query = queries[line - 1]
        xpath = compiled(query)
        if xpath is None:
            continue
        ours += _tamis_s(document, query)
        tree = etree.ElementTree(etree.fromstring(document))
        theirs += min(_lxml_s(xpath, tree) for _ in range(ROUNDS))
    return theirs / ours


def _tamis_s(document: bytes, query: str) -> float:
    index = tamis.Index()
    index.insert(1, query)
    batch = array([document] * TIMES)
    index.match_batch(batch)
    matching = min(timed(index.match_batch, batch)[0] for _ in range(ROUNDS))
    reading = min(timed(read_all, batch)[0] for _ in range(ROUNDS))
    return max(matching - reading, 0.0)


def _lxml_s(xpath: etree.XPath, tree: Any) -> float:
    start = perf_counter()
    for _ in range(TIMES):
        xpath(tree)
    return perf_counter() - start
