"""As many queries as asked for, each only once where they are to be distinct."""

from collections.abc import Callable, Iterator

from tamis.model.progress import Report
from tamis.workload.error import WorkloadError

PATIENCE = 100_000
"""So many failures in a row mean that there are no more distinct queries."""


def draw(
    make: Callable[[], str | None], number: int, *, distinct: bool = True, progress: Report | None = None
) -> Iterator[str]:
    """What `make` gives, without `None` and without what it gave before."""
    seen: set[str] = set()
    made = failures = 0
    while made < number:
        query = make()
        if query is None or (distinct and query in seen):
            failures += 1
            if failures == PATIENCE:
                raise WorkloadError(
                    "too-few-queries",
                    f"this DTD and these parameters give no more than about {made} such queries",
                )
            continue
        failures = 0
        made += 1
        if distinct:
            seen.add(query)
        if progress is not None and made % 1_000 == 0:
            progress(made, number)
        yield query
    if progress is not None:
        progress(made, number)
