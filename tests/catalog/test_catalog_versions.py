"""Versions of a catalog: equal counts with different marks are different versions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tamis.catalog import Catalog, database
from tamis.model.subscription import NewSubscription
from tamis.model.version import Version
from tests.helpers.generations import backup, version_of


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def test_versions_of_a_restored_catalog_are_other_ones(catalog: Catalog) -> None:
    catalog.add(NewSubscription("bob", "//a", "x"))
    kept, restore = catalog.version, backup(catalog)
    lost = []
    for id in "abc":
        catalog.add(NewSubscription("bob", "//a", id))
        lost.append(catalog.version)
    restore()
    assert catalog.version == kept
    for id in "def":
        # Versions still to come, then ones that there are again.
        for version in lost:
            with catalog.changes(version) as changes:
                assert changes.since is None
        with catalog.changes(kept) as changes:
            assert changes.since == kept
            added = [row["id"] for batch in changes.added for row in batch.to_pylist()]
            assert added == [one.id for one in catalog.list() if one.id != "x"]
        catalog.add(NewSubscription("bob", "//a", id))
    assert catalog.version.count == lost[-1].count
    assert catalog.version != lost[-1]


def test_changes_without_effect_make_no_version(catalog: Catalog) -> None:
    catalog.add(NewSubscription("bob", "//a", "x"))
    version = catalog.version
    catalog.add(NewSubscription("bob", "//a", "x"))
    assert catalog.version == version
    assert version_of(catalog, 2).mark == ""


def test_a_catalog_without_marks_is_migrated(catalog_url: str) -> None:
    """It continues at its version; its followers start from an empty catalog."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    engine = sa.create_engine(catalog_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        config.attributes.update(connection=connection, version_table=database.VERSION_TABLE)
        command.upgrade(config, "0003")
        connection.execute(sa.text("UPDATE catalog SET version = 7, compacted = 5"))
    engine.dispose()
    with Catalog(catalog_url) as catalog:
        migrated = catalog.version
        assert migrated.count == 7
        assert version_of(catalog, 6).mark == ""
        with catalog.changes(Version(7, "")) as changes:
            assert changes.since is None
        catalog.add(NewSubscription("bob", "//a", "x"))
        with catalog.changes(migrated) as changes:
            assert changes.since == migrated
            assert [batch.num_rows for batch in changes.added] == [1]
