"""Random documents × random filters over what XPath 2.0 adds: every engine against Saxon.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/kernel/test_random_xpath2.py`.
"""

from collections.abc import Iterator
from random import Random

import pytest

import tamis
from tests.helpers import random_documents as documents
from tests.helpers import random_xpath2 as xpath2
from tests.helpers.engines import Answer
from tests.helpers.random_runs import SEED, assert_engines_agree, covered, pairs_wanted
from tests.helpers.saxon import Saxon

PAIRS = pairs_wanted(100_000)
DOCUMENTS = 16

# Each production in turn; those that seldom hold more often.
TURNS = xpath2.PRODUCTIONS * 2 + xpath2.SELDOM_TRUE * 6


def test_every_engine_agrees_with_saxon(capsys: pytest.CaptureFixture[str]) -> None:
    def batches() -> Iterator[tuple[list[xpath2.Query], Answer]]:
        random = Random(SEED)
        while True:
            roots = [documents.document(random) for _ in range(DOCUMENTS)]
            messages = [documents.serialise(random, root) for root in roots]
            queries = [xpath2.query(random, name) for name in TURNS]
            texts = [query.text for query in queries]
            for text in texts:
                canonical = tamis.check(text, documents.NAMESPACES).canonical
                assert tamis.check(canonical).canonical == canonical, f"not stable (seed {SEED}): {text}"
            saxon = Saxon(messages)
            # An error is no match.
            expected = saxon.answer(xpath2.PROLOG, [query.saxon for query in queries])
            assert_engines_agree(texts, messages, expected, "Saxon")
            yield queries, expected

    coverage = covered(capsys, "XPath 2.0", PAIRS, xpath2.PRODUCTIONS, batches)
    if coverage.pairs >= 100_000:
        coverage.assert_each(300)
