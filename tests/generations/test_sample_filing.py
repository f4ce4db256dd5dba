"""Subscriptions are filed by a sample of messages: old ones again, where that pays."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tamis
from tamis.catalog import Catalog
from tamis.engine import Index
from tamis.generations.publisher import REFILE_MESSAGES, Publisher
from tamis.generations.store import Store
from tamis.model.envelope_value import Envelope
from tamis.model.message_batch import with_envelopes
from tamis.model.sample import Sampled
from tamis.model.subscription import NewSubscription


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def put(catalog: Catalog, id: str, query: str) -> None:
    catalog.add(NewSubscription("bob", query, id, "t"))


@pytest.mark.parametrize(("common", "rare"), ["ab", "ba"])
def test_subscriptions_are_compiled_by_a_sample_of_messages(
    catalog: Catalog, tmp_path: Path, common: str, rare: str
) -> None:
    """A query is a candidate where its rarest condition holds."""
    sample = [Sampled(number, "t", f"<r><{common}/></r>".encode()) for number in range(100)]
    for number in range(300):
        put(catalog, f"s{number}", f"//a and //b and not(//c{number})")
    with Publisher(catalog, Store(tmp_path), tmp_path, sample=lambda: sample) as publisher:
        number = publisher.refresh()
    index = tamis.Index.open(tmp_path, number)
    messages = [f"<r><{name}/></r>" for name in (common, rare)]
    assert index.match_batch(messages, tenant="t")["candidates"].to_pylist() == [0, 300]


def test_older_subscriptions_are_filed_again_when_the_sample_shows_that_it_pays(
    catalog: Catalog, tmp_path: Path
) -> None:
    """Compiled before there was a sample: of each query both paths seemed equally rare."""
    sample: list[Sampled] = []
    for number in range(300):
        put(catalog, f"s{number}", f"//a{number} and //b{number}")
    messages = [
        f"<r>{''.join(f'<{name}{number}/>' for number in range(300))}</r>".encode() for name in ("a", "b")
    ]
    with Publisher(catalog, Store(tmp_path), tmp_path, sample=lambda: sample) as publisher:
        by_guess = publisher.refresh()
        batch = Index.open(tmp_path, by_guess).match_batch(messages, tenant="t")
        candidates = batch["candidates"].to_pylist()
        assert candidates in ([0, 300], [300, 0])
        common = messages[candidates.index(300)]
        sample += [Sampled(number, "t", common) for number in range(REFILE_MESSAGES)]
        filed = publisher.refresh()
        assert filed > by_guess
        batch = Index.open(tmp_path, filed).match_batch([common], tenant="t")
        assert batch["candidates"].to_pylist() == [0]
        # Nothing more is saved, and nothing is compiled.
        sample += [replace(one, rank=one.rank + 1_000) for one in sample]
        assert publisher.refresh() == filed


def test_the_sample_has_the_envelopes_of_messages(catalog: Catalog, tmp_path: Path) -> None:
    """A header that is in all messages is no good access test."""
    envelope = Envelope(headers={"n": "1"})
    sample = [Sampled(number, "t", b"<r><a/></r>", envelope) for number in range(100)]
    for number in range(300):
        query = f"$envelope/header[@name = 'n'] = '1' and //b and not(//c{number})"
        put(catalog, f"s{number}", query)
    with Publisher(catalog, Store(tmp_path), tmp_path, sample=lambda: sample) as publisher:
        index = Index.open(tmp_path, publisher.refresh())
    batch = index.match_batch(with_envelopes([b"<r><a/></r>"], [envelope]), tenant="t")
    assert batch["candidates"].to_pylist() == [0]
