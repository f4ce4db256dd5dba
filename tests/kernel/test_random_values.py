"""Random documents × random filters over all of XPath 1.0: every engine against lxml.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/kernel/test_random_values.py`,
or `make soak`.
"""

import os
import time
from collections import Counter
from random import Random

import pytest
from lxml import etree

from tests.helpers import random_documents as documents
from tests.helpers import random_values as values
from tests.helpers.engines import ENGINES, Answer
from tests.helpers.random_queries import RandomQuery

PAIRS = int(os.environ.get("TAMIS_PAIRS") or 200_000)
SEED = int(os.environ.get("TAMIS_SEED") or time.time_ns() % 1_000_000_007)

DOCUMENTS = 16

# Each production in turn; those that seldom hold more often.
TURNS = (*values.PRODUCTIONS, "filter-steps", "function lang", "test processing-instruction('')") * 3


def oracle(queries: list[RandomQuery], messages: list[bytes]) -> Answer:
    """The matches by lxml."""
    trees = [etree.ElementTree(etree.fromstring(message)) for message in messages]
    matched: Answer = [set() for _ in trees]
    for place, query in enumerate(queries):
        holds = etree.XPath(f"boolean({query.oracle})", namespaces=documents.NAMESPACES)
        for tree, places in zip(trees, matched, strict=True):
            if holds(tree):
                places.add(place)
    return matched


def test_every_engine_agrees_with_lxml(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    holding: Counter[str] = Counter()
    failing: Counter[str] = Counter()
    pairs = 0
    with capsys.disabled():
        print(f"\nrandom values: seed {SEED}", flush=True)
    while pairs < PAIRS:
        roots = [documents.document(random) for _ in range(DOCUMENTS)]
        messages = [documents.serialise(random, root) for root in roots]
        queries = [values.query(random, name) for name in TURNS]
        texts = [query.text for query in queries]
        expected = oracle(queries, messages)
        for name, engine in ENGINES.items():
            got = engine(texts, messages, documents.NAMESPACES)
            for message, right, given in zip(messages, expected, got, strict=True):
                wrong = [texts[place] for place in sorted(right ^ given)]
                assert not wrong, f"{name} and lxml differ (seed {SEED}) on {message!r}: {wrong}"
        for place, query in enumerate(queries):
            count = sum(place in matched for matched in expected)
            for production in query.productions:
                holding[production] += count
                failing[production] += len(expected) - count
        pairs += len(texts) * len(messages)
    rare = min(values.PRODUCTIONS, key=lambda production: min(holding[production], failing[production]))
    with capsys.disabled():
        print(
            f"{pairs:,} pairs, {len(ENGINES)} engines; rarest production {rare!r}: "
            f"{holding[rare]:,} true, {failing[rare]:,} false"
        )
    if pairs >= 100_000:
        for production in values.PRODUCTIONS:
            assert min(holding[production], failing[production]) >= 1_000, production
