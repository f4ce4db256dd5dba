"""Kills a refresh at each of its file operations, and checks what is left each time.

Run as `python -m tests.helpers.refresh_killed FOLDER`; prints how often it killed.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tamis.catalog import Catalog
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription
from tests.helpers.generations import Shown, active, shown

STEPS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "sqlite3.connect"}
"""The audit events of Python that count as file operations; the kernel writes its files in between."""


def main(folder: Path) -> int:
    """Kill at the first file operation, at the second, until there are no more."""
    origin = folder / "origin"
    origin.mkdir()
    in_child(lambda: prepare(origin))
    here = folder / "here"
    killed = 0
    while True:
        shutil.copytree(origin, here)
        died = in_child(partial(kill_at, killed, here))
        in_child(partial(see, here, lose=killed % 2 == 1))
        shutil.rmtree(here)
        if not died:
            return killed
        killed += 1


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


def see(here: Path, *, lose: bool) -> None:
    """Check that the store has a complete generation, the old or the new, and that a refresh continues."""
    store = Store(here / "store")
    left = store.newest()
    assert left is not None
    old, new = ({f"s{number}" for number in numbers} for numbers in (range(20), range(5, 30)))
    assert {row[1] for row in shown(store, left, here / "cache").values()} in (old, new)
    if lose:
        shutil.rmtree(here / "work")
    expected = refresh(here)
    newest = store.newest()
    assert newest is not None
    assert newest >= left
    assert shown(store, newest, here / "cache") == expected
    assert {row[1] for row in expected.values()} == new


def kill_at(step: int, here: Path) -> None:
    """Refresh, and kill this process before its nth file operation."""
    taken = 0

    def watch(event: str, _: object) -> None:
        nonlocal taken
        if event in STEPS:
            taken += 1
            if taken > step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    refresh(here)


def in_child(work: Callable[[], object]) -> bool:
    """Run work in a child process; returns whether it was killed."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        sys.exit("a child failed")
    return False


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
