"""A progress bar on stderr, only if that is a terminal and the work takes a while."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tamis.model.progress import Report

DELAY = 0.5
"""Seconds before a bar appears. Short work needs none, and rich takes long to import."""


@contextmanager
def bar(title: str) -> Iterator[Report]:
    """Show a bar; the work calls the yielded function to report its progress."""
    begun = time.monotonic()
    shown: Report | None = None
    with ExitStack() as stack:

        def report(done: int, total: int) -> None:
            nonlocal shown
            if shown is None and sys.stderr.isatty() and time.monotonic() - begun >= DELAY:
                shown = stack.enter_context(_visible_bar(title))
            if shown is not None:
                shown(done, total)

        yield report


@contextmanager
def _visible_bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
