"""The generation that the service tries messages against, as newer ones are published."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription
from tamis.service.newest import Newest
from tests.helpers.served import settings_in

MESSAGE = b"<a/>"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(settings_in(tmp_path).catalog) as catalog:
        yield catalog


def publish(catalog: Catalog, folder: Path, id: str) -> int:
    """One more subscription to all messages, and a generation that has it."""
    catalog.add(NewSubscription("ann", "/a", id=id))
    store = settings_in(folder).generations
    with Publisher(catalog, Store(store), store) as publisher:
        return publisher.refresh()


def test_a_store_may_be_empty(tmp_path: Path) -> None:
    with Newest(settings_in(tmp_path)).opened() as opened:
        assert opened is None


def test_a_newer_generation_keeps_the_caches_of_the_one_before(catalog: Catalog, tmp_path: Path) -> None:
    newest = Newest(settings_in(tmp_path))
    publish(catalog, tmp_path, "q1")
    with newest.opened() as first:
        assert first is not None
        assert len(first.index.match(MESSAGE)) == 1
        states = first.index.stats().cache_states
    number = publish(catalog, tmp_path, "q2")
    with newest.opened() as second:
        assert second is not None
        assert second.generation.number == number
        assert second.index is first.index
        assert second.index.stats().cache_states == states > 0
        assert len(second.index.match(MESSAGE)) == 2


def test_a_request_keeps_its_generation_while_a_newer_one_is_opened(catalog: Catalog, tmp_path: Path) -> None:
    newest = Newest(settings_in(tmp_path))
    publish(catalog, tmp_path, "q1")
    with newest.opened() as first:
        assert first is not None
        publish(catalog, tmp_path, "q2")
        with newest.opened() as second:
            assert second is not None
            assert [len(one.index.match(MESSAGE)) for one in (first, second)] == [1, 2]
    publish(catalog, tmp_path, "q3")
    with newest.opened() as third:
        assert third is not None
        assert third.index is second.index
        assert len(third.index.match(MESSAGE)) == 3
