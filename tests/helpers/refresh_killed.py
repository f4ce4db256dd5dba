"""Kills a refresh at each of its file operations, and checks what is left each time.

Run as `python -m tests.helpers.refresh_killed`; prints how often it killed.
"""

import shutil
from pathlib import Path

from tamis.catalog import Catalog
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription
from tests.helpers.generations import Shown, active, shown
from tests.helpers.killing import kill_at_each_step


def prepare(here: Path) -> None:
    """A published generation, and changes that wait for the next."""
    with Catalog(f"{here}/catalog.db") as catalog:
        for number in range(20):
            catalog.add(NewSubscription("bob", f"not(/b{number})", f"s{number}"))
        with Publisher(catalog, Store(here / "store"), here / "work") as publisher:
            publisher.refresh()
        for number in range(20, 30):
            catalog.add(NewSubscription("bob", f"not(/b{number})", f"s{number}"))
        for number in range(5):
            catalog.remove(f"s{number}")


def refresh(here: Path) -> Shown:
    """Refresh; returns the subscriptions of the generation."""
    with (
        Catalog(f"{here}/catalog.db") as catalog,
        Publisher(catalog, Store(here / "store"), here / "work") as publisher,
    ):
        publisher.refresh()
        return active(catalog)


def see(here: Path, killed: int) -> None:
    """Check that the store has a complete generation, the old or the new, and that a refresh continues.

    Every second time, the publisher's folder is lost too.
    """
    store = Store(here / "store")
    left = store.newest()
    assert left is not None
    old, new = ({f"s{number}" for number in numbers} for numbers in (range(20), range(5, 30)))
    assert {row[1] for row in shown(store, left, here / "cache").values()} in (old, new)
    if killed % 2:
        shutil.rmtree(here / "work")
    expected = refresh(here)
    newest = store.newest()
    assert newest is not None
    assert newest >= left
    assert shown(store, newest, here / "cache") == expected
    assert {row[1] for row in expected.values()} == new


if __name__ == "__main__":
    print(kill_at_each_step(refresh, see, prepare))
