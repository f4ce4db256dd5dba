"""The tables of the relational engine follow the catalog, and are those of a rebuild."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.cli.commands import main
from tamis.errors import CatalogError
from tamis.generations.catalog_tables import update_tables
from tamis.model.subscription import NewSubscription, PrefixMap
from tamis.relational.tables import Tables
from tests.helpers.generations import backup


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def content(tables: Tables) -> dict[str, list[str]]:
    names = ("alternatives", "subscriptions", "linear_paths")
    return {
        name: sorted(repr({**row, "change": 0}) for row in tables.live(name).to_pylist()) for name in names
    }


def test_tables_follow_the_catalog(catalog: Catalog, tmp_path: Path) -> None:
    choose = random.Random(7)
    catalog.put_prefixes(PrefixMap("m", {"p": "urn:0"}, "t"))
    for step in range(25):
        id, tenant = f"s{choose.randrange(12)}", choose.choice(["", "t"])
        query = f"//a[@x = {choose.randrange(6)}][b]"
        match choose.randrange(4):
            case 0 | 1:
                catalog.import_([(1, NewSubscription("bob", query, id, tenant))], lambda *_: None)
            case 2:
                catalog.remove(id, tenant=tenant)
            case 3:
                with suppress(CatalogError):
                    choose.choice([catalog.pause, catalog.resume])(id, tenant=tenant)
        if step == 12:
            catalog.put_prefixes(PrefixMap("m", {"p": "urn:1"}, "t"))
        if step % 3 == 0:
            tables = update_tables(catalog, tmp_path / "steps")
            built = update_tables(catalog, tmp_path / f"built{step}")
            assert content(tables) == content(built)
            assert tables.version == built.version
    changes = len(tables.changes)
    tables = update_tables(catalog, tmp_path / "steps")
    assert len(update_tables(catalog, tmp_path / "steps").changes) == len(tables.changes) <= changes + 1


def test_tables_of_a_restored_catalog_are_built_anew(catalog: Catalog, tmp_path: Path) -> None:
    catalog.add(NewSubscription("bob", "//a", "one", ""))
    restore = backup(catalog)
    catalog.add(NewSubscription("bob", "//b", "two", ""))
    update_tables(catalog, tmp_path / "tables")
    restore()
    catalog.add(NewSubscription("bob", "//c", "three", ""))
    tables = update_tables(catalog, tmp_path / "tables")
    paths = {row["text"] for row in tables.live("linear_paths").to_pylist()}
    assert paths == {"//a", "//c"}


def test_the_command(
    catalog: Catalog, catalog_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        catalog.add(NewSubscription("bob", f"//a[@x = {number}]", f"s{number}", ""))
    given = ["--catalog", catalog_url, "--tables", str(tmp_path / "tables")]
    assert main(["relational", "build", *given]) == 0
    catalog.remove("s1", tenant="")
    assert main(["relational", "build", *given]) == 0
    assert main(["relational", "compact", *given]) == 0
    capsys.readouterr()
    assert main(["relational", "status", *given]) == 0
    status = json.loads(capsys.readouterr().out)
    counts = ("changes", "alternatives", "linear_paths", "subscriptions", "tag_paths")
    assert [status[name] for name in counts] == [1, 2, 1, 2, 0]
    Tables.open(tmp_path / "tables").path_matches({1: "/a/@x"})
    assert main(["relational", "forget", "/a/@x", *given]) == 0
    assert main(["relational", "forget", "/a/@x", *given]) == 1
    assert "no-tag-path" in capsys.readouterr().err
