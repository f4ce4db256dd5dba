"""Draws a number of items, distinct on request."""

from collections.abc import Callable, Iterator

from tamis.model.progress import Report
from tamis.workload.error import WorkloadError

ATTEMPTS = 100_000
"""Failures in a row before giving up: there are probably no more distinct items."""


def draw(
    make: Callable[[], str | None], number: int, *, distinct: bool = True, progress: Report | None = None
) -> Iterator[str]:
    """Items of `make`, without `None` and, if distinct, without duplicates."""
    seen: set[str] = set()
    drawn = failures = 0
    while drawn < number:
        query = make()
        if query is None or (distinct and query in seen):
            failures += 1
            if failures == ATTEMPTS:
                raise WorkloadError(
                    "too-few-queries",
                    f"this DTD and these parameters give no more than about {drawn} such queries",
                )
            continue
        failures = 0
        drawn += 1
        if distinct:
            seen.add(query)
        if progress is not None and drawn % 1_000 == 0:
            progress(drawn, number)
        yield query
    if progress is not None:
        progress(drawn, number)
