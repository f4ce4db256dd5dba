"""Random documents × random filters over all of XPath 1.0: every engine against lxml.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/kernel/test_random_values.py`,
or `make soak`.
"""

from collections.abc import Iterator
from random import Random

import pytest

from tests.helpers import random_documents as documents
from tests.helpers import random_values as values
from tests.helpers.engines import Answer
from tests.helpers.random_queries import RandomQuery
from tests.helpers.random_runs import SEED, assert_engines_agree, by_lxml, covered, pairs_wanted

PAIRS = pairs_wanted(200_000)
DOCUMENTS = 16

# Each production in turn; those that seldom hold more often.
TURNS = (*values.PRODUCTIONS, "filter-steps", "function lang", "test processing-instruction('')") * 3


def test_every_engine_agrees_with_lxml(capsys: pytest.CaptureFixture[str]) -> None:
    def batches() -> Iterator[tuple[list[RandomQuery], Answer]]:
        random = Random(SEED)
        while True:
            roots = [documents.document(random) for _ in range(DOCUMENTS)]
            messages = [documents.serialise(random, root) for root in roots]
            queries = [values.query(random, name) for name in TURNS]
            expected = by_lxml([query.oracle for query in queries], messages)
            assert_engines_agree([query.text for query in queries], messages, expected, "lxml")
            yield queries, expected

    coverage = covered(capsys, "values", PAIRS, values.PRODUCTIONS, batches)
    if coverage.pairs >= 200_000:
        coverage.assert_each(1_000)
