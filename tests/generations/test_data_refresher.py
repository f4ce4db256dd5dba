"""`[[data]]` of the settings: read when due, again after a failure, without new versions of the same."""

from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.errors import TamisError
from tamis.generations.data_refresher import DataRefresher
from tamis.generations.data_updater import DataUpdater
from tamis.generations.store import Store
from tamis.settings import load_settings

SETTINGS = """
[[data]]
name = "watch"
path = "watch.csv"
key = "/row/symbol"
interval = 0.001

[[data]]
name = "rates"
url = "sqlite:///${FOLDER}/rates.db"
query = "select 1 as n"
shared = true
"""


def test_sources_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FOLDER", str(tmp_path))
    (tmp_path / "tamis.toml").write_text(SETTINGS)
    settings = load_settings(tmp_path / "tamis.toml", environment={})
    with Catalog(str(tmp_path / "tamis.db")) as catalog:
        updater = DataUpdater(catalog.data, Store(tmp_path / "store"), tmp_path / "build")
        refresher = DataRefresher(settings.data, catalog.data, updater)

        def numbers() -> dict[str, int]:
            """The versions after a refresh of what is due."""
            refresher._due = dict.fromkeys(refresher._due, 0.0)
            refresher.refresh_due()
            found = {one.name: one.current for one in catalog.data.list()}
            return {name: current.number for name, current in found.items() if current is not None}

        assert numbers() == {"rates": 1}
        assert "data watch: unreadable-data" in caplog.text
        (tmp_path / "watch.csv").write_text("symbol\nIBM\n")
        assert numbers() == {"rates": 1, "watch": 1}
        assert numbers() == {"rates": 1, "watch": 1}
        (tmp_path / "watch.csv").write_text("symbol\nIBM\nIBM\n")
        assert numbers() == {"rates": 1, "watch": 1}
        assert "duplicate-key" in caplog.text
        (tmp_path / "watch.csv").write_text("symbol\nIBM\nSAP\n")
        assert numbers() == {"rates": 1, "watch": 2}
        assert catalog.data.get("rates", tenant="anybody").shared
        # Nothing is due.
        refresher._due = dict.fromkeys(refresher._due, float("inf"))
        (tmp_path / "watch.csv").unlink()
        caplog.clear()
        refresher.refresh_due()
        assert caplog.text == ""


@pytest.mark.parametrize(
    "table",
    ["name = 'x'", "name = 'x'\npath = 'a'\nurl = 'b'\nquery = 'c'", "name = 'x'\nurl = 'b'", "path = 'a'"],
)
def test_settings_that_say_no_source_are_refused(tmp_path: Path, table: str) -> None:
    (tmp_path / "tamis.toml").write_text(f"[[data]]\n{table}\n")
    with pytest.raises(TamisError, match=r"\[\[data\]\]"):
        load_settings(tmp_path / "tamis.toml", environment={})
