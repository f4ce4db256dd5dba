"""Random documents × random queries: every engine against lxml.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/kernel/test_random.py`,
or `make soak`.
"""

from collections.abc import Iterator
from random import Random

import pytest

from tests.helpers import random_documents as documents
from tests.helpers import random_queries as queries
from tests.helpers.engines import Answer
from tests.helpers.random_runs import SEED, assert_engines_agree, by_lxml, covered, pairs_wanted

PAIRS = pairs_wanted(200_000)

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

    @property
    def texts(self) -> list[str]:
        return [query.text for query in self.queries]

    def oracle(self) -> Answer:
        """The matches by lxml."""
        return by_lxml([query.oracle for query in self.queries], self.messages)


def test_every_engine_agrees_with_lxml(capsys: pytest.CaptureFixture[str]) -> None:
    distinct: set[str] = set()

    def batches() -> Iterator[tuple[list[queries.RandomQuery], Answer]]:
        random = Random(SEED)
        while True:
            group = Group(random)
            expected = group.oracle()
            assert_engines_agree(group.texts, group.messages, expected, "lxml")
            # Enough to prove that queries vary; a soak run would fill the memory with them.
            if len(distinct) < 50_000:
                distinct.update(group.texts)
            yield group.queries, expected

    coverage = covered(capsys, "pairs", PAIRS, queries.PRODUCTIONS, batches)
    if coverage.pairs >= 200_000:
        assert len(distinct) >= 5_000
        assert 0.2 <= coverage.true / coverage.pairs <= 0.8
        coverage.assert_each(1_000)
