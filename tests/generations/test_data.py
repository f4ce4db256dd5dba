"""Local data in generations: what they name, updates, sweeps, and several processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tamis
from tamis.catalog import Catalog
from tamis.catalog.data_sets import KEPT
from tamis.generations.data_updater import DataUpdater
from tamis.generations.manifest import Manifest
from tamis.generations.opener import OpenGeneration, open_generation
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.data_set import NewDataSet
from tamis.model.matching import Generation
from tamis.model.subscription import NewSubscription

QUERY = "for $t in //trade return <deal>{ collection('companies')/row[symbol = $t/@symbol]/name }</deal>"


def rows(**names: str) -> list[bytes]:
    return [f"<row><symbol>{key}</symbol><name>{value}</name></row>".encode() for key, value in names.items()]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(f"{tmp_path}/tamis.db") as catalog:
        for tenant in ("a", "b"):
            catalog.data.create(NewDataSet("companies", tenant, key="/row/symbol"))
        yield catalog


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def updater(catalog: Catalog, store: Store, tmp_path: Path) -> DataUpdater:
    return DataUpdater(catalog.data, store, tmp_path / "build")


@pytest.fixture
def publisher(catalog: Catalog, store: Store, tmp_path: Path) -> Iterator[Publisher]:
    with Publisher(catalog, store, tmp_path / "store") as publisher:
        yield publisher


def opened(store: Store, number: int, previous: OpenGeneration | None = None, **more: str) -> OpenGeneration:
    return open_generation(Generation(store.url, number, stored=True, **more), previous)  # type: ignore[arg-type]


def deal(generation: OpenGeneration, symbol: str, tenant: str = "a") -> bytes | None:
    (output,) = generation.index.transform(f"<trade symbol='{symbol}'/>".encode(), tenant=tenant)
    return output.payload


def subscribe(catalog: Catalog, tenant: str = "a") -> None:
    catalog.add(NewSubscription("bob", QUERY, "x", tenant))


def test_an_update_alone_makes_a_generation_and_old_ones_stay_as_they_are(
    catalog: Catalog, updater: DataUpdater, publisher: Publisher, store: Store
) -> None:
    updater.replace("companies", rows(IBM="Big Blue"), tenant="a")
    subscribe(catalog)
    first = publisher.refresh()
    assert publisher.refresh() == first
    updater.change("companies", upserts=rows(SAP="Soft"), tenant="a")
    second = publisher.refresh()
    assert second > first
    assert publisher.refresh() == second
    before, after = opened(store, first), opened(store, second)
    assert (deal(before, "SAP"), deal(after, "SAP")) == (b"<deal/>", b"<deal><name>Soft</name></deal>")
    assert deal(after, "IBM") == b"<deal><name>Big Blue</name></deal>"
    # By advancing the index, there and back again.
    moved = opened(store, second, before)
    assert deal(moved, "SAP") == b"<deal><name>Soft</name></deal>"
    assert deal(opened(store, first, moved), "SAP") == b"<deal/>"


def test_tenants_have_their_own_data_and_unused_sets_are_left_out(
    catalog: Catalog, updater: DataUpdater, publisher: Publisher, store: Store
) -> None:
    updater.replace("companies", rows(IBM="of a"), tenant="a")
    updater.replace("companies", rows(IBM="of b"), tenant="b")
    subscribe(catalog, "a")
    number = publisher.refresh()
    assert [(one.tenant, one.name) for one in store.manifest(number).data] == [("a", "companies")]
    subscribe(catalog, "b")
    both = opened(store, publisher.refresh())
    assert deal(both, "IBM", "a") == b"<deal><name>of a</name></deal>"
    assert deal(both, "IBM", "b") == b"<deal><name>of b</name></deal>"
    catalog.remove("x", tenant="a")
    assert [one.tenant for one in store.manifest(publisher.refresh()).data] == ["b"]


def test_a_shared_set_is_mapped_once_for_all_tenants(
    catalog: Catalog, updater: DataUpdater, publisher: Publisher, store: Store
) -> None:
    catalog.data.create(NewDataSet("rates", shared=True))
    updater.replace("rates", rows(IBM="7"))
    for tenant in ("a", "b"):
        catalog.add(NewSubscription("bob", QUERY.replace("companies", "rates"), "y", tenant))
    generation = opened(store, publisher.refresh())
    assert len(generation.data) == 1
    assert deal(generation, "IBM", "a") == deal(generation, "IBM", "b") == b"<deal><name>7</name></deal>"


def test_sweeps_keep_what_can_be_reverted_to_and_what_generations_name(
    catalog: Catalog, updater: DataUpdater, publisher: Publisher, store: Store
) -> None:
    assert store.directory is not None
    updater.replace("companies", rows(IBM="0"), tenant="a")
    subscribe(catalog)
    oldest = publisher.refresh()
    for version in range(1, KEPT + 3):
        updater.replace("companies", rows(IBM=str(version)), tenant="a")
    newest = publisher.refresh()
    publisher.store.sweep([oldest, newest], young=0, kept_files=catalog.data.kept_files)
    assert deal(opened(store, oldest), "IBM") == b"<deal><name>0</name></deal>"
    publisher.store.sweep([newest], young=0, kept_files=catalog.data.kept_files)
    known = {name for one in catalog.data.versions("companies", tenant="a") for name in one.files}
    assert known <= {path.name for path in store.directory.iterdir()}
    assert not set(Manifest.read(store.directory, newest).all_files) - {
        path.name for path in store.directory.iterdir()
    }
    catalog.data.revert("companies", tenant="a", version=4)
    assert deal(opened(store, publisher.refresh()), "IBM") == b"<deal><name>3</name></deal>"


def test_a_host_fetches_data_to_its_cache_and_a_publisher_elsewhere_needs_none(
    catalog: Catalog, updater: DataUpdater, store: Store, tmp_path: Path
) -> None:
    updater.replace("companies", rows(IBM="Big Blue"), tenant="a")
    subscribe(catalog)
    with Publisher(catalog, store, tmp_path / "index") as publisher:
        first = publisher.refresh()
        generation = opened(store, first, cache=str(tmp_path / "cache"))
        assert deal(generation, "IBM") == b"<deal><name>Big Blue</name></deal>"
        updater.change("companies", deletes=["IBM"], tenant="a")
        after = opened(store, publisher.refresh(), generation, cache=str(tmp_path / "cache"))
        assert deal(after, "IBM") == b"<deal/>"
        assert publisher.has(first)


def test_what_fails_leaves_the_current_version(
    catalog: Catalog, updater: DataUpdater, store: Store, tmp_path: Path
) -> None:
    current = updater.replace("companies", rows(IBM="Big Blue"), tenant="a").current
    for records in ([b"<row><symbol>", *rows(A="1")], [*rows(A="1"), *rows(A="2")], [b"<row/>"]):
        with pytest.raises(tamis.TamisError, match="record"):
            updater.replace("companies", records, tenant="a")
        with pytest.raises(tamis.TamisError):
            updater.change("companies", upserts=records, tenant="a")
    with pytest.raises(tamis.CatalogError, match="unknown-data"):
        updater.replace("companies", [], tenant="c")
    assert catalog.data.get("companies", tenant="a").current == current
    assert list((tmp_path / "build").iterdir()) == []
    # The same records once more are no new version.
    assert updater.replace("companies", rows(IBM="Big Blue"), tenant="a").current == current
