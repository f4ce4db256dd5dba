"""Only its user can read the database, independent of the umask: it has secrets and payloads."""

import os
from pathlib import Path

import pytest

from tamis import cli
from tamis.catalog import Catalog
from tamis.model.subscription import NewSubscription
from tamis.storage.files import current_umask


@pytest.fixture(autouse=True)
def usual_umask() -> object:
    before = os.umask(0o022)
    yield None
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}


def test_a_new_database_and_its_log(tmp_path: Path) -> None:
    with Catalog(str(tmp_path / "tamis.db")) as catalog:
        catalog.add(NewSubscription("ann", "//a"))
        assert modes(tmp_path) == dict.fromkeys(("tamis.db", "tamis.db-wal", "tamis.db-shm"), "0o600")


def test_changed_permissions_are_kept(tmp_path: Path) -> None:
    (tmp_path / "tamis.db").touch(0o660)
    (tmp_path / "tamis.db").chmod(0o660)
    with Catalog(str(tmp_path / "tamis.db")):
        assert modes(tmp_path)["tamis.db"] == "0o660"


def test_every_command_creates_private_files(tmp_path: Path) -> None:
    query = tmp_path / "query"
    query.write_text("//a")
    assert (
        cli.main(["subscriptions", "add", "//a", "--subscriber", "ann", "--catalog", str(tmp_path / "c.db")])
        == 0
    )
    assert current_umask() == 0o077
