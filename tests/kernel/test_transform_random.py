"""Random documents × random transformations: every engine against Saxon.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/test_transform_random.py`.
"""

import re
from collections import Counter
from random import Random

import pytest

import tamis
from tamis import naive
from tests.helpers import random_documents as documents
from tests.helpers import random_transformations as transformations
from tests.helpers.engines import ENGINES, TRANSFORMERS
from tests.helpers.random_runs import SEED, pairs_wanted
from tests.helpers.saxon import Result, Saxon

PAIRS = pairs_wanted(24_000)

VARIANTS = 15
QUERIES = 80


SUBSET = b"""<!DOCTYPE %s [
<!ENTITY t "t &amp; &#38;lt; u"> <!ENTITY e "x<b z='1'>y&t;<!--c--></b><d/>">
<!ATTLIST a z NMTOKENS "7  8"> <!ATTLIST b y CDATA "2"> ]>"""
"""Declares entities and attributes."""


class Group:
    """Some documents that are alike, and transformations grown around their elements."""

    def __init__(self, random: Random) -> None:
        original = documents.document(random)
        self.roots = [original, *(documents.variant(random, original) for _ in range(VARIANTS))]
        self.messages = [documents.serialise(random, root) for root in self.roots]
        self.queries: list[transformations.RandomTransformation] = []
        turns = transformations.PRODUCTIONS
        first = random.randrange(len(turns))
        while len(self.queries) < QUERIES:
            roots = random.sample(self.roots, 3)
            witnesses = [random.choice([root, *root.descendants()]) for root in roots]
            production = turns[(first + len(self.queries)) % len(turns)]
            query = transformations.transformation(random, witnesses, production)
            if accepted(query.text):
                self.queries.append(query)


def with_subset(random: Random, root: documents.Element) -> bytes:
    """A message with an internal DTD subset, and references to what is declared there."""
    for element in (root, *root.descendants()):
        if random.random() < 0.3:
            reference = documents.Markup(random.choice(("&t;", "&e;", "&e;&t;")))
            element.children.insert(random.randint(0, len(element.children)), reference)
    message = documents.serialise(random, root)
    start = re.search(rb"<([A-Za-z][^\s/>]*)", message)
    assert start is not None
    return message[: start.start()] + SUBSET % start[1] + message[start.start() :]


def accepted(text: str) -> bool:
    """Whether a transformation is one; an attribute can be there twice by chance."""
    try:
        tamis.check(text, documents.NAMESPACES)
    except tamis.QueryError as error:
        if error.code != "duplicate-attribute":
            raise
        return False
    return True


def test_every_engine_makes_what_saxon_makes(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    made: Counter[str] = Counter()
    distinct: set[str] = set()
    pairs = outputs = errors = 0
    with capsys.disabled():
        print(f"\nrandom transformations: seed {SEED}", flush=True)
    while pairs < PAIRS:
        group = Group(random)
        texts = [query.text for query in group.queries]
        canonical = [tamis.check(text, documents.NAMESPACES).canonical for text in texts]
        saxon = Saxon(group.messages)
        given = {
            name: transform(texts, group.messages, documents.NAMESPACES)
            for name, transform in TRANSFORMERS.items()
        }
        naive = given["naive"]
        for name, rows in given.items():
            assert rows == naive, f"{name} and naive differ (seed {SEED})"
        assert TRANSFORMERS["naive"](canonical, group.messages, {}) == naive, f"seed {SEED}"
        matching: list[set[int]] = [set() for _ in group.messages]
        for place, query in enumerate(group.queries):
            expected = saxon.outputs(query.text, documents.NAMESPACES)
            for number, (message, right) in enumerate(zip(group.messages, expected, strict=True)):
                got = Result.by(*naive[number][place])
                assert got == right, f"seed {SEED}: {query.text}\nof {message!r}\nsaxon {right}\ntamis {got}"
                if right.tree is not None or right.code is not None:
                    matching[number].add(place)
                    errors += right.code is not None
                    made.update(query.productions)
        for name, match in ENGINES.items():
            answer = match(texts, group.messages, documents.NAMESPACES)
            assert answer == matching, f"{name} matches otherwise (seed {SEED})"
        pairs += len(texts) * len(group.messages)
        outputs += sum(map(len, matching))
        distinct.update(texts)
    rare = min(transformations.PRODUCTIONS, key=lambda production: made[production])
    with capsys.disabled():
        print(
            f"{pairs:,} pairs, {outputs / pairs:.0%} with output, {errors:,} errors, "
            f"{len(distinct):,} distinct transformations; rarest production {rare!r}: {made[rare]:,} outputs"
        )
    if pairs >= 20_000:
        assert len(distinct) >= 500
        assert outputs >= pairs * 2 // 5
        assert made[rare] >= 100, rare


def test_entities_and_attributes_of_a_dtd_are_in_outputs() -> None:
    random = Random(SEED)
    pairs = outputs = 0
    while pairs < PAIRS // 8:
        group = Group(random)
        messages = [with_subset(random, root) for root in group.roots]
        texts = [query.text for query in group.queries]
        limits = tamis.Limits(internal_subset=True)
        made = naive.naive_transform(texts, messages, documents.NAMESPACES, limits)
        saxon = Saxon(messages)
        for place, text in enumerate(texts):
            expected = saxon.outputs(text, documents.NAMESPACES)
            for message, right, row in zip(messages, expected, made, strict=True):
                got = Result.by(*row[place])
                assert got == right, f"seed {SEED}: {text}\nof {message!r}\nsaxon {right}\ntamis {got}"
                outputs += right.tree is not None
        pairs += len(texts) * len(messages)
    assert outputs >= pairs // 4
