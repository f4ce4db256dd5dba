"""Imports: as many lines as there are, a batch at a time, each batch a transaction."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from tamis.catalog import changing, rows
from tamis.catalog.changing import Plan
from tamis.catalog.database import Database, Writing
from tamis.errors import CatalogError, QueryError
from tamis.model.subscription import Imported, NewSubscription, PrefixMap, Refusal, State
from tamis.model.subscription_lines import Line

BATCH = 10_000
"""So many lines go in together."""

Given = Sequence[tuple[int, Line]]
"""Lines with their places."""


def import_lines(
    database: Database, given: Iterable[tuple[int, Line]], refused: Callable[[Refusal], None]
) -> Imported:
    """Have the catalog be as the lines say, in their order."""
    counts: Counter[str] = Counter()
    for batch in _batches(given):
        place, first = batch[0]
        if isinstance(first, PrefixMap):
            outcome, refusals = _import_map(database, place, first)
        else:
            outcome, refusals = _import_batch(database, batch)
        counts.update(outcome)
        counts["refused"] += len(refusals)
        for refusal in refusals:
            refused(refusal)
    return Imported(counts["added"], counts["changed"], counts["unchanged"], counts["refused"])


def _batches(given: Iterable[tuple[int, Line]]) -> Iterator[Given]:
    """Lines by the batch; a prefix map stands alone, since the lines after it may refer to it."""
    remaining = iter(given)
    while batch := list(islice(remaining, BATCH)):
        start = 0
        for at, (_, line) in enumerate(batch):
            if isinstance(line, PrefixMap):
                if start < at:
                    yield batch[start:at]
                yield batch[at : at + 1]
                start = at + 1
        if start < len(batch):
            yield batch[start:]


def _import_batch(database: Database, batch: Given) -> tuple[Counter[str], list[Refusal]]:
    """What became of subscriptions, and those that were refused, in their order."""
    misfits: list[Refusal] = []
    asked: list[tuple[int, rows.Row, State | None]] = []
    for place, line in batch:
        if isinstance(line, Refusal):
            misfits.append(line)
        elif isinstance(line, NewSubscription):
            try:
                asked.append((place, rows.row_of(line), line.state))
            except CatalogError as error:
                misfits.append(Refusal(place, error.code, error.reason))

    def work(writing: Writing) -> tuple[Counter[str], list[Refusal]]:
        counts: Counter[str] = Counter()
        refusals: list[Refusal] = []
        shared = {(row["tenant"], row["prefix_map"]) for _, row, _ in asked if row["prefix_map"]}
        maps = changing.maps_of(writing.connection, shared)
        keys = dict.fromkeys((row["tenant"], row["id"]) for _, row, _ in asked)
        plan = Plan(writing, changing.found(writing.connection, keys))
        for place, row, state in asked:
            try:
                rows.check(row, maps)
            except QueryError as error:
                refusals.append(Refusal(place, error.code, error.reason, error.column))
            except CatalogError as error:
                refusals.append(Refusal(place, error.code, error.reason))
            else:
                counts[plan.put(row, state)] += 1
        plan.carry_out()
        return counts, sorted(misfits + refusals, key=lambda refusal: refusal.place)

    return database.write(work)


def _import_map(database: Database, place: int, given: PrefixMap) -> tuple[Counter[str], list[Refusal]]:
    def work(writing: Writing) -> tuple[Counter[str], list[Refusal]]:
        try:
            return Counter([changing.put_map(writing, given)]), []
        except CatalogError as error:
            # Some users may have been revised before one was found that cannot be.
            writing.changed = False
            return Counter(), [Refusal(place, error.code, error.reason)]

    return database.write(work)
