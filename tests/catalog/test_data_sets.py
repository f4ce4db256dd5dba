"""Data sets in the catalog: versions, tenants, and the subscriptions that name them."""

import threading
from collections.abc import Iterator

import pytest

import tamis
from tamis.catalog import Catalog
from tamis.catalog.data_sets import ABANDONED, KEPT
from tamis.errors import CatalogError
from tamis.model import subscription_lines as lines
from tamis.model.data_set import DataSet, NewDataSet, UsedData
from tamis.model.hashed_file import File
from tamis.model.subscription import NewSubscription, Refusal

QUERY = "//trade[@symbol = collection('watch')/row/symbol]"


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def updated(catalog: Catalog, name: str, tenant: str = "", *, records: int = 3, mark: str = "") -> DataSet:
    """A data set after one more update, whose files have the version in their names."""
    present = catalog.data.get(name, tenant=tenant)
    number = 1 if present.current is None else present.current.number + 1
    files = {f"{name}-{number}{mark}.data": File(10, "a"), "common.data": File(5, "b")}
    version = catalog.data.begin(
        name,
        tenant=tenant,
        manifest=f"{name}-{number}{mark}.data",
        files=files,
        records=records,
        source="test",
    )
    base = None if present.current is None else present.current.number
    return catalog.data.switch(name, version, tenant=tenant, base=base)


def used(catalog: Catalog) -> list[tuple[str, str, int]]:
    with catalog.changes(None) as changes:
        return [(one.tenant, one.name, one.version) for one in changes.data]


def refusal(catalog: Catalog, query: str, tenant: str = "") -> tamis.QueryError:
    with pytest.raises(tamis.QueryError) as caught:
        catalog.add(NewSubscription("bob", query, tenant=tenant))
    return caught.value


def test_a_data_set_is_created_once_and_updated(catalog: Catalog) -> None:
    new = NewDataSet("watch", "t", key="row/symbol", indexed=("row/symbol", "row/owner"), source="watch.csv")
    created = catalog.data.create(new)
    assert catalog.data.create(new) == created
    assert (created.key, created.indexed, created.current) == (new.key, new.indexed, None)
    current = updated(catalog, "watch", "t").current
    assert current is not None
    assert (current.number, current.records, current.bytes) == (1, 3, 15)
    assert current.files == {"watch-1.data": File(10, "a"), "common.data": File(5, "b")}
    with pytest.raises(CatalogError) as caught:
        catalog.data.create(NewDataSet("watch", "t"))
    assert caught.value.code == "data-exists"
    for name in ("", "a/b", "ü", "-a", "a b"):
        with pytest.raises(CatalogError, match="data-name"):
            catalog.data.create(NewDataSet(name))


def test_a_switch_makes_a_version_of_the_catalog(catalog: Catalog) -> None:
    catalog.data.create(NewDataSet("watch"))
    before = catalog.version
    files = {"x": File(1, "")}
    number = catalog.data.begin("watch", tenant="", manifest="x", files=files, records=1, source="")
    assert catalog.version == before
    assert catalog.data.get("watch").current is None
    catalog.data.switch("watch", number, tenant="", base=None)
    assert catalog.version.count == before.count + 1
    # The same once more, as after a lost connection.
    catalog.data.switch("watch", number, tenant="", base=None)
    assert catalog.version.count == before.count + 1


def test_of_two_updates_at_once_one_is_refused(catalog: Catalog) -> None:
    catalog.data.create(NewDataSet("watch"))
    numbers = [
        catalog.data.begin("watch", tenant="", manifest=mark, files={}, records=1, source="") for mark in "ab"
    ]
    outcomes: list[str] = []

    def switch(number: int) -> None:
        try:
            catalog.data.switch("watch", number, tenant="", base=None)
            outcomes.append("switched")
        except CatalogError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=switch, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["data-changed", "switched"]


def test_files_are_kept_while_versions_can_be_reverted_to_and_uploads_go_on(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.data.create(NewDataSet("watch"))
    for _ in range(KEPT + 2):
        updated(catalog, "watch")
    kept = [one.number for one in catalog.data.versions("watch")]
    assert kept == list(range(KEPT + 2, 2, -1))
    assert catalog.data.kept_files() == {"common.data"} | {f"watch-{number}.data" for number in kept}
    reverted = catalog.data.revert("watch")
    assert reverted.current is not None
    assert reverted.current.number == KEPT + 1
    with pytest.raises(CatalogError, match="unknown-version"):
        catalog.data.revert("watch", version=1)
    new = {"new": File(1, "")}
    number = catalog.data.begin("watch", tenant="", manifest="new", files=new, records=1, source="")
    assert "new" in catalog.data.kept_files()
    monkeypatch.setattr("tamis.catalog.data_sets.ABANDONED", -ABANDONED)
    assert "new" not in catalog.data.kept_files()
    monkeypatch.undo()
    catalog.data.abandon("watch", number, tenant="")
    assert "new" not in catalog.data.kept_files()
    with pytest.raises(CatalogError, match="upload-lost"):
        catalog.data.switch("watch", number, tenant="", base=KEPT + 1)


def test_unknown_data_and_that_of_another_tenant_are_refused_alike(catalog: Catalog) -> None:
    catalog.data.create(NewDataSet("watch", "a"))
    empty = refusal(catalog, QUERY, "a")
    updated(catalog, "watch", "a")
    catalog.add(NewSubscription("bob", QUERY, "x", tenant="a"))
    theirs = refusal(catalog, QUERY, "b")
    nobodys = refusal(catalog, QUERY.replace("watch", "wotch"), "b")
    assert theirs.code == nobodys.code == empty.code == "unknown-data"
    assert theirs.reason == nobodys.reason.replace("wotch", "watch") == empty.reason
    assert theirs.column == QUERY.index("collection") + 1
    refusals: list[Refusal] = []
    asked = f'{{"id": "y", "tenant": "b", "subscriber": "s", "query": "{QUERY}"}}'
    assert catalog.import_(lines.read([asked]), refusals.append).refused == 1
    assert refusals[0].code == "unknown-data"
    for call in (catalog.data.get, catalog.data.versions, catalog.data.revert):
        with pytest.raises(CatalogError, match="unknown-data"):
            call("watch", tenant="b")
    assert not catalog.data.remove("watch", tenant="b")
    assert catalog.data.list(tenant="b") == []


def test_a_shared_set_serves_all_tenants_and_names_are_not_used_twice(catalog: Catalog) -> None:
    catalog.data.create(NewDataSet("rates", shared=True))
    updated(catalog, "rates")
    query = QUERY.replace("watch", "rates")
    for tenant in ("", "a", "b"):
        catalog.add(NewSubscription("bob", query, "x", tenant=tenant))
    assert used(catalog) == [("", "rates", 1), ("a", "rates", 1), ("b", "rates", 1)]
    assert [one.users for one in catalog.data.list(tenant="a")] == [1]
    assert catalog.data.get("rates").users == 3
    with pytest.raises(CatalogError, match="the operator shares"):
        catalog.data.create(NewDataSet("rates", "a"))
    catalog.data.create(NewDataSet("watch", "a"))
    with pytest.raises(CatalogError, match="data-exists"):
        catalog.data.create(NewDataSet("watch", shared=True))


def test_data_in_use_cannot_be_removed(catalog: Catalog) -> None:
    for name in ("watch", "other"):
        catalog.data.create(NewDataSet(name))
        updated(catalog, name)
    catalog.add(NewSubscription("bob", QUERY, "x"))
    catalog.pause("x")
    with pytest.raises(CatalogError, match="data-in-use: subscriptions name watch: x"):
        catalog.data.remove("watch")
    catalog.change("x", query=QUERY.replace("watch", "other"))
    assert used(catalog) == [("", "other", 1)]
    assert catalog.data.remove("watch")
    assert not catalog.data.remove("watch")
    with pytest.raises(CatalogError, match="data-in-use"):
        catalog.data.remove("other")
    catalog.remove("x")
    assert catalog.data.remove("other")
    assert catalog.data.kept_files() == set()
    assert used(catalog) == []


def test_queries_that_the_data_cannot_serve_are_refused(catalog: Catalog) -> None:
    catalog.data.create(NewDataSet("watch"))
    updated(catalog, "watch", records=1_001)
    scan = refusal(catalog, "//trade[@price < collection('watch')/row/price]")
    assert (scan.code, scan.value, scan.limit) == ("scan-limit", 1_001, 1_000)
    assert refusal(catalog, "//trade[@price = doc('watch')/row/price]").code == "no-document"
    catalog.add(NewSubscription("bob", QUERY))


def test_changes_name_the_versions_that_subscriptions_use(catalog: Catalog) -> None:
    catalog.data.create(NewDataSet("watch", "a"))
    catalog.data.create(NewDataSet("unused", "a"))
    updated(catalog, "watch", "a")
    updated(catalog, "unused", "a")
    assert used(catalog) == []
    catalog.add(NewSubscription("bob", QUERY, "x", tenant="a"))
    before = catalog.version
    updated(catalog, "watch", "a")
    with catalog.changes(before) as changes:
        files = {"watch-2.data": File(10, "a"), "common.data": File(5, "b")}
        assert list(changes.data) == [UsedData("a", "watch", 2, "watch-2.data", files)]
        assert (changes.since, list(changes.added), changes.removed) == (before, [], [])
    catalog.data.revert("watch", tenant="a")
    assert used(catalog) == [("a", "watch", 1)]
