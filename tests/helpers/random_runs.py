"""Runs of random tests: their seed and size, the loops over engines and lxml, and what they covered.

Without `TAMIS_SEED` a test always has the same seed: it fails by a change, not by chance. `make soak` takes
another.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from lxml import etree

import tamis
from tests.helpers import random_documents as documents
from tests.helpers.engines import ENGINES, Answer

SEED = int(os.environ.get("TAMIS_SEED") or 20_260)


def pairs_wanted(default: int) -> int:
    """How many pairs of a query and a message a test tries."""
    return int(os.environ.get("TAMIS_PAIRS") or default)


class Asked(Protocol):
    """A random query, as tamis is asked."""

    @property
    def text(self) -> str: ...

    @property
    def productions(self) -> frozenset[str]: ...


def by_lxml(
    oracles: Sequence[str], messages: Sequence[bytes], variables: Sequence[Mapping[str, Any]] | None = None
) -> Answer:
    """The matches by lxml of its spellings of queries, with variables for each message."""
    trees = [etree.ElementTree(etree.fromstring(message)) for message in messages]
    matched: Answer = [set() for _ in trees]
    for place, oracle in enumerate(oracles):
        holds = etree.XPath(f"boolean({oracle})", namespaces=documents.NAMESPACES)
        for row, tree in enumerate(trees):
            if holds(tree, **(variables[row] if variables else {})):
                matched[row].add(place)
    return matched


def assert_engines_agree(
    texts: Sequence[str],
    messages: Sequence[bytes],
    expected: Answer,
    oracle: str,
    envelopes: Sequence[tamis.Envelope | None] | None = None,
) -> None:
    """Each engine is asked once for all queries and messages."""
    asked: Any = messages if envelopes is None else tamis.with_envelopes(messages, envelopes)
    for name, engine in ENGINES.items():
        got = engine(texts, asked, documents.NAMESPACES)
        for row, (right, given) in enumerate(zip(expected, got, strict=True)):
            wrong = [(texts[place], place in right) for place in sorted(right ^ given)]
            where = f"{messages[row]!r} in {None if envelopes is None else envelopes[row]}"
            assert not wrong, f"{name} and {oracle} differ (seed {SEED}) on {where}: {wrong[:10]}"


@dataclass(slots=True)
class Coverage:
    """How often queries with a production were true, and how often false."""

    productions: Sequence[str]
    holding: Counter[str] = field(default_factory=Counter)
    failing: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    true: int = 0

    def add(self, queries: Sequence[Asked], expected: Answer) -> None:
        """A batch: some queries, each with the same messages."""
        for place, query in enumerate(queries):
            count = sum(place in matched for matched in expected)
            for production in query.productions:
                self.holding[production] += count
                self.failing[production] += len(expected) - count
            self.true += count
        self.pairs += len(queries) * len(expected)

    def of(self, production: str) -> int:
        """How often it was true or false, whichever is less."""
        return min(self.holding[production], self.failing[production])

    def __str__(self) -> str:
        rare = min(self.productions, key=self.of)
        return (
            f"{self.pairs:,} pairs, {self.true / self.pairs:.0%} true, {len(ENGINES)} engines; rarest "
            f"production {rare!r}: {self.holding[rare]:,} true, {self.failing[rare]:,} false"
        )

    def assert_each(self, least: int) -> None:
        """Each production was true and false at least so often."""
        short = {name: self.of(name) for name in self.productions if self.of(name) < least}
        assert not short, f"too seldom true or false (seed {SEED}): {short}"


def covered(
    capsys: pytest.CaptureFixture[str],
    what: str,
    pairs: int,
    productions: Sequence[str],
    batches: Callable[[], Iterable[tuple[Sequence[Asked], Answer]]],
) -> Coverage:
    """Runs batches until there are enough pairs; prints the seed first and the coverage at the end."""
    coverage = Coverage(productions)
    with capsys.disabled():
        print(f"\nrandom {what}: seed {SEED}", flush=True)
    for queries, expected in batches():
        millions = coverage.pairs // 1_000_000
        coverage.add(queries, expected)
        with capsys.disabled():
            if coverage.pairs // 1_000_000 > millions:
                print(f"{coverage.pairs:,} pairs, no difference", flush=True)
        if coverage.pairs >= pairs:
            break
    with capsys.disabled():
        print(coverage)
    return coverage
