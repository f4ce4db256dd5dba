"""Random documents × random queries: every engine against lxml.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/test_random.py`,
or `make soak`.
"""

import os
import time
from collections import Counter
from random import Random

import pytest
from lxml import etree

from tests.helpers import random_documents as documents
from tests.helpers import random_queries as queries
from tests.helpers.engines import ENGINES, Answer

PAIRS = int(os.environ.get("TAMIS_PAIRS") or 200_000)
SEED = int(os.environ.get("TAMIS_SEED") or time.time_ns() % 1_000_000_007)

ORIGINALS, VARIANTS = 2, 11
QUERIES = 240

# Each production in turn; those that seldom hold, or come by seldom by themselves, more often.
TURNS = (*queries.PRODUCTIONS, "xml-attribute", "constant", "position-never")


class Group:
    """Some documents that are alike, and queries grown around their elements."""

    def __init__(self, random: Random) -> None:
        self.roots: list[documents.Element] = []
        for _ in range(ORIGINALS):
            original = documents.document(random)
            self.roots += [original, *(documents.variant(random, original) for _ in range(VARIANTS))]
        self.messages = [documents.serialise(random, root) for root in self.roots]
        self.queries: list[queries.RandomQuery] = []
        first = random.randrange(len(TURNS))
        for number in range(QUERIES):
            root = random.choice(self.roots)
            witness = random.choice([root, *root.descendants()])
            self.queries.append(queries.query(random, witness, TURNS[(first + number) % len(TURNS)]))

    def oracle(self) -> Answer:
        """The matches by lxml."""
        trees = [etree.ElementTree(etree.fromstring(message)) for message in self.messages]
        matched: Answer = [set() for _ in trees]
        for place, query in enumerate(self.queries):
            holds = etree.XPath(f"boolean({query.oracle})", namespaces=documents.NAMESPACES)
            for tree, places in zip(trees, matched, strict=True):
                if holds(tree):
                    places.add(place)
        return matched


def test_every_engine_agrees_with_lxml(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    holding: Counter[str] = Counter()
    failing: Counter[str] = Counter()
    distinct: set[str] = set()
    pairs = true = 0
    with capsys.disabled():
        print(f"\nrandom pairs: seed {SEED}", flush=True)
    while pairs < PAIRS:
        group = Group(random)
        texts = [query.text for query in group.queries]
        expected = group.oracle()
        for name, engine in ENGINES.items():
            got = engine(texts, group.messages, documents.NAMESPACES)
            for message, right, given in zip(group.messages, expected, got, strict=True):
                wrong = [group.queries[place].text for place in sorted(right ^ given)]
                assert not wrong, f"{name} and lxml differ (seed {SEED}) on {message!r}: {wrong}"
        for place, query in enumerate(group.queries):
            count = sum(place in matched for matched in expected)
            for production in query.productions:
                holding[production] += count
                failing[production] += len(expected) - count
            true += count
        before, pairs = pairs, pairs + len(texts) * len(group.messages)
        if pairs // 1_000_000 > before // 1_000_000:
            with capsys.disabled():
                print(f"{pairs:,} pairs, no difference", flush=True)
        # Enough to prove that queries vary; a soak run would fill the memory with them.
        if len(distinct) < 50_000:
            distinct.update(texts)
    with capsys.disabled():
        rare = min(queries.PRODUCTIONS, key=lambda production: min(holding[production], failing[production]))
        print(
            f"{pairs:,} pairs, {true / pairs:.0%} true, {len(distinct):,} distinct queries, "
            f"{len(ENGINES)} engines; rarest production {rare!r}: "
            f"{holding[rare]:,} true, {failing[rare]:,} false"
        )
    if pairs >= 100_000:
        assert len(distinct) >= 5_000
        assert 0.2 <= true / pairs <= 0.8
        for production in queries.PRODUCTIONS:
            assert min(holding[production], failing[production]) >= 1_000, production
