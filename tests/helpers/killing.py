"""Kills work at each step that it takes on files, and sees what is left each time.

Every kill happens in a child of one process that has imported everything: a child starts in milliseconds,
and what Python reads to import modules is no step.
"""

import importlib
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

STEPS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "sqlite3.connect"}
"""What Python tells of what it does; the kernel's own files are written in between."""

MEMORY = Path("/dev/shm")
"""In memory: a kill, unlike a power cut, loses nothing that is written, and a disk would be slow to flush."""


def kill_at_each_step(
    work: Callable[[Path], object],
    see: Callable[[Path, int], None],
    prepare: Callable[[Path], object] = lambda _: None,
) -> int:
    """Kill at the first step, at the second, until there are no more; how often.

    Each time, work begins with a copy of what `prepare` left. `see` also gets how many were killed before.
    """
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        origin, here = Path(folder) / "origin", Path(folder) / "here"
        origin.mkdir()
        import_ahead(partial(prepare, origin))
        shutil.copytree(origin, here)
        import_ahead(partial(work_and_see, here, work, see))
        shutil.rmtree(here)
        killed = 0
        while True:
            shutil.copytree(origin, here)
            died = in_child(partial(kill_at, killed, work, here))
            in_child(partial(see, here, killed))
            shutil.rmtree(here)
            if not died:
                return killed
            killed += 1


def work_and_see(here: Path, work: Callable[[Path], object], see: Callable[[Path, int], None]) -> None:
    work(here)
    see(here, 0)


def kill_at(step: int, work: Callable[[Path], object], here: Path) -> None:
    """Work, and die before the nth step in a folder."""
    taken = 0

    def watch(event: str, details: tuple[object, ...]) -> None:
        nonlocal taken
        if event in STEPS and str(details[0]).startswith(str(here)):
            taken += 1
            if taken > step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    work(here)


def import_ahead(work: Callable[[], object]) -> None:
    """Do work in a child, and import here what that imported: the threads that it started are not copied."""
    with NamedTemporaryFile("r") as names:

        def report() -> None:
            work()
            Path(names.name).write_text("\n".join(sys.modules))

        in_child(report)
        for name in names.read().splitlines():
            # Some packages put modules under names that cannot be imported.
            with suppress(ImportError):
                importlib.import_module(name)


def in_child(work: Callable[[], object]) -> bool:
    """Do work in a process of its own; whether that was killed."""
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
