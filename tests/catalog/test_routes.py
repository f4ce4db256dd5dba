"""Tables of routes: versions, deltas that do not fit, and what generations show of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.route import ROUTE_REVISION
from tamis.model.subscription import NewSubscription
from tamis.network.tables import EMPTY, EVERYTHING, TableVersion, TenantRow, changed_hash
from tests.helpers.generations import backup

A, B, C = ("t", "//a"), ("t", "//b"), ("u", "//a")


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


@pytest.fixture
def publisher(catalog: Catalog, tmp_path: Path) -> Iterator[Publisher]:
    with Publisher(catalog, Store(f"{tmp_path}/store"), tmp_path / "store") as publisher:
        yield publisher


def version(count: int, *rows: TenantRow, mark: str = "m") -> TableVersion:
    return TableVersion(count, mark, changed_hash(EMPTY, rows, ()))


def routes_in(catalog: Catalog) -> dict[str, set[TenantRow]]:
    found: dict[str, set[TenantRow]] = {}
    with catalog.changes(None) as changes:
        for row in (row for batch in changes.added for row in batch.to_pylist()):
            if row["revision"] == ROUTE_REVISION:
                found.setdefault(row["id"], set()).add((row["tenant"], row["query"]))
    return found


def test_a_table_is_replaced_and_changed(catalog: Catalog) -> None:
    routes = catalog.routes
    first, second = version(1, A, B), version(2, B, C)
    assert routes.replace("x.y", first, {A, B})
    assert routes.replace("y.z", version(7), ())
    assert routes_in(catalog) == {"x.y": {A, B}}
    before = catalog.version
    assert routes.change("x.y", first, second, {C}, {A})
    assert routes_in(catalog) == {"x.y": {B, C}}
    assert routes.tables() == {"x.y": second, "y.z": version(7)}
    with catalog.changes(before) as changes:
        assert changes.since == before
        assert len(changes.removed) == 1
        assert [row["query"] for batch in changes.added for row in batch.to_pylist()] == [C[1]]
        assert (changes.tables, changes.routes) == (routes.tables(), 2)
    # The same once more, as after a lost connection.
    assert routes.change("x.y", first, second, {C}, {A})
    third = version(3, C)
    assert routes.replace("x.y", third, {C})
    assert routes_in(catalog) == {"x.y": {C}}


def test_what_does_not_fit_changes_nothing(catalog: Catalog) -> None:
    routes = catalog.routes
    first = version(1, A)
    assert not routes.replace("x.y", first, {A, B})
    assert not routes.change("x.y", first, version(2, A, B), {B}, ())
    assert routes.replace("x.y", first, {A})
    now = catalog.version
    # Another version, another hash, a row that is there already, one that is not there.
    assert not routes.change("x.y", version(2, A), version(3, A, B), {B}, ())
    assert not routes.change("x.y", first, version(2, A), {B}, ())
    assert not routes.change("x.y", first, version(2, A, A), {A}, ())
    assert not routes.change("x.y", first, TableVersion(2, "m", changed_hash(first.hash, (), {B})), (), {B})
    assert not routes.change("x.y", first, TableVersion(2, "m", EVERYTHING), {B}, ())
    assert (routes.tables(), catalog.version) == ({"x.y": first}, now)


def test_another_version_with_the_same_rows_is_no_change_of_the_catalog(catalog: Catalog) -> None:
    routes = catalog.routes
    first, other = version(3, A), version(1, A, mark="n")
    routes.replace("x.y", first, {A})
    now = catalog.version
    assert routes.change("x.y", first, other, (), ())
    assert routes.change("x.y", first, other, (), ())
    assert not routes.change("x.y", first, version(2, A, mark="n"), (), ())
    assert (routes.tables(), catalog.version) == ({"x.y": other}, now)


def test_tables_of_links_that_are_gone_are_removed(catalog: Catalog) -> None:
    routes = catalog.routes
    routes.replace("x.y", version(1, A), {A})
    routes.replace("x.z", version(1, B), {B})
    before = catalog.version
    routes.keep(["x.z"])
    assert routes_in(catalog) == {"x.z": {B}}
    with catalog.changes(before) as changes:
        assert (len(changes.removed), set(changes.tables)) == (1, {"x.z"})
    now = catalog.version
    routes.keep(["x.z"])
    assert catalog.version == now


def test_routes_are_no_subscriptions(catalog: Catalog, publisher: Publisher) -> None:
    catalog.add(NewSubscription("bob", "//a", "s", "t"))
    catalog.routes.replace("x.y", version(1, A, B), {A, B})
    publisher.refresh()
    assert [one.id for one in catalog.list()] == ["s"]
    assert len(list(catalog.export())) == 1
    assert publisher.subscriptions == 1


def test_a_generation_shows_which_tables_it_has(catalog: Catalog, publisher: Publisher) -> None:
    first = publisher.refresh()
    assert publisher.store.manifest(first).tables == {}
    # No row, but another meaning: nothing is wanted.
    catalog.routes.replace("x.y", version(1), ())
    second = publisher.refresh()
    assert second > first
    assert publisher.store.manifest(second).tables == {"x.y": EMPTY}
    assert publisher.shown is not None
    assert (publisher.shown.version, publisher.shown.tables) == (catalog.version, {"x.y": EMPTY})
    catalog.routes.replace("x.y", version(2, A), {A})
    third = publisher.refresh()
    assert publisher.store.manifest(third).tables == {"x.y": version(2, A).hash}
    assert publisher.store.manifest(third).routes == 1
    catalog.routes.replace("x.y", TableVersion(3, "m", EVERYTHING), ())
    assert publisher.store.manifest(publisher.refresh()).tables == {}


def test_a_restored_catalog_shows_its_own_tables(catalog: Catalog, publisher: Publisher) -> None:
    catalog.routes.replace("x.y", version(1, A), {A})
    publisher.refresh()
    restore = backup(catalog)
    catalog.routes.change("x.y", version(1, A), version(2, A, B), {B}, ())
    publisher.refresh()
    restore()
    assert publisher.store.manifest(publisher.refresh()).tables == {"x.y": version(1, A).hash}
    assert routes_in(catalog) == {"x.y": {A}}


def test_what_is_established(catalog: Catalog) -> None:
    assert catalog.routes.established() == {}
    catalog.routes.establish({"a": 3, "b": 7})
    catalog.routes.establish({"a": 4})
    assert catalog.routes.established() == {"a": 4}
