"""Transformations with a DTD: messages become what they always do, whether they conform or not.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/test_transform_schema.py`.
"""

from collections.abc import Sequence
from random import Random

import pytest

import tamis
from tamis.model.dtd import Dtd
from tests.helpers import random_documents as documents
from tests.helpers import random_transformations as transformations
from tests.helpers.engines import by_network, loaded, naive_transform
from tests.helpers.random_runs import SEED, pairs_wanted
from tests.kernel.test_transform_random import accepted

PAIRS = pairs_wanted(24_000)

VARIANTS = 15
QUERIES = 80


def plain(element: documents.Element, depth: int, *, by_depth: bool) -> None:
    """Take namespaces out; and recursion too, where names tell the depth."""
    local = f"{element.name.local}{depth}" if by_depth else element.name.local
    element.name = documents.Name("", local)
    for child in element.elements():
        plain(child, depth + 1, by_depth=by_depth)


def schema_of(roots: Sequence[documents.Element]) -> Dtd:
    """A schema that allows some documents."""
    elements: dict[str, dict[str, list[int | None]]] = {}
    for root in roots:
        for element in (root, *root.descendants()):
            children = elements.setdefault(element.name.local, {})
            children.update({child.name.local: [0, None] for child in element.elements()})
    entries = {name: {"content": "any", "children": children} for name, children in elements.items()}
    return Dtd.from_dict({"elements": entries, "roots": sorted({root.name.local for root in roots})})


def conforms(root: documents.Element, dtd: Dtd) -> bool:
    return root.name.local in dtd.roots and all(
        child.name.local in dtd.elements[element.name.local].children
        for element in (root, *root.descendants())
        if element.name.local in dtd.elements
        for child in element.elements()
    )


def test_a_dtd_changes_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    pairs = made = conforming = 0
    with capsys.disabled():
        print(f"\nrandom transformations with a DTD: seed {SEED}", flush=True)
    while pairs < PAIRS:
        original = documents.document(random)
        roots = [original, *(documents.variant(random, original) for _ in range(VARIANTS))]
        by_depth = random.random() < 0.5
        for root in roots:
            plain(root, 1, by_depth=by_depth)
        dtd = schema_of(roots[: VARIANTS // 2])
        messages = [documents.serialise(random, root) for root in roots]
        turns = transformations.PRODUCTIONS
        queries: list[str] = []
        while len(queries) < QUERIES:
            witnesses = [random.choice([root, *root.descendants()]) for root in random.sample(roots, 3)]
            production = turns[(pairs + len(queries)) % len(turns)]
            text = transformations.transformation(random, witnesses, production).text
            if accepted(text):
                queries.append(text)
        expected = naive_transform(queries, messages, documents.NAMESPACES)
        given = by_network(loaded, tamis.Schema(dtd))(queries, messages, documents.NAMESPACES)
        for message, right, got in zip(messages, expected, given, strict=True):
            for query, wanted, found in zip(queries, right, got, strict=True):
                assert found == wanted, f"seed {SEED}: {query}\nof {message!r}\nnaive {wanted}\ntamis {found}"
        pairs += len(queries) * len(messages)
        made += sum(output is not None for row in expected for output, _ in row)
        conforming += sum(conforms(root, dtd) for root in roots) * len(queries)
    with capsys.disabled():
        print(f"{pairs:,} pairs, {made / pairs:.0%} with output, {conforming / pairs:.0%} conforming")
    if pairs >= 20_000:
        assert pairs // 5 < conforming < pairs * 19 // 20
        assert made >= pairs // 3
