"""Random documents × random filters over what XPath 2.0 adds: every engine against Saxon.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/kernel/test_random_xpath2.py`.
"""

import os
import time
from collections import Counter
from random import Random

import pytest

import tamis
from tests.helpers import random_documents as documents
from tests.helpers import random_xpath2 as xpath2
from tests.helpers.engines import ENGINES, Answer
from tests.helpers.saxon import Saxon

PAIRS = int(os.environ.get("TAMIS_PAIRS") or 24_000)
SEED = int(os.environ.get("TAMIS_SEED") or time.time_ns() % 1_000_000_007)

DOCUMENTS = 16


def oracle(queries: list[xpath2.Query], messages: list[bytes]) -> Answer:
    """The matches by Saxon. An error is no match."""
    saxon = Saxon(messages)
    matched: Answer = [set() for _ in messages]
    for place, query in enumerate(queries):
        for message, holds in enumerate(saxon.conditions(xpath2.PROLOG, query.saxon)):
            if holds:
                matched[message].add(place)
    return matched


def test_every_engine_agrees_with_saxon(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    holding: Counter[str] = Counter()
    failing: Counter[str] = Counter()
    pairs = 0
    with capsys.disabled():
        print(f"\nrandom XPath 2.0: seed {SEED}", flush=True)
    while pairs < PAIRS:
        roots = [documents.document(random) for _ in range(DOCUMENTS)]
        messages = [documents.serialise(random, root) for root in roots]
        queries = [xpath2.query(random, name) for name in xpath2.PRODUCTIONS * 4]
        texts = [query.text for query in queries]
        for text in texts:
            canonical = tamis.check(text, documents.NAMESPACES).canonical
            assert tamis.check(canonical).canonical == canonical, f"not stable (seed {SEED}): {text}"
        expected = oracle(queries, messages)
        for name, engine in ENGINES.items():
            got = engine(texts, messages, documents.NAMESPACES)
            for message, right, given in zip(messages, expected, got, strict=True):
                wrong = [(texts[place], queries[place].saxon) for place in sorted(right ^ given)]
                assert not wrong, f"{name} and Saxon differ (seed {SEED}) on {message!r}: {wrong}"
        for place, query in enumerate(queries):
            count = sum(place in matched for matched in expected)
            for production in query.productions:
                holding[production] += count
                failing[production] += len(expected) - count
        pairs += len(texts) * len(messages)
    rare = min(xpath2.PRODUCTIONS, key=lambda production: min(holding[production], failing[production]))
    with capsys.disabled():
        print(
            f"{pairs:,} pairs, {len(ENGINES)} engines; rarest production {rare!r}: "
            f"{holding[rare]:,} true, {failing[rare]:,} false"
        )
    for production in xpath2.PRODUCTIONS:
        assert min(holding[production], failing[production]) >= 20, production
