"""Bulk import of subscriptions and prefix maps, one transaction a batch."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from tamis.catalog import mutations, rows
from tamis.catalog.data_uses import check_uses
from tamis.catalog.database import Database, WriteTransaction
from tamis.catalog.mutations import UpsertPlan
from tamis.errors import CatalogError, QueryError
from tamis.model.subscription import Imported, LineWarning, NewSubscription, PrefixMap, Refusal, State
from tamis.model.subscription_lines import Line

BATCH = 10_000
"""Lines per transaction."""
WARNINGS = 100
"""The most warnings that are returned."""

NumberedLines = Sequence[tuple[int, Line]]
"""Lines with their line numbers."""


def import_lines(
    database: Database, lines: Iterable[tuple[int, Line]], refused: Callable[[Refusal], None]
) -> Imported:
    """Upsert the lines in order, and report those that are refused."""
    counts: Counter[str] = Counter()
    warnings: list[LineWarning] = []
    for batch in _batches(lines):
        place, first = batch[0]
        if isinstance(first, PrefixMap):
            outcome, refusals = _import_map(database, place, first)
        else:
            outcome, refusals, new = _import_batch(database, batch)
            counts["warned"] += len({warning.place for warning in new})
            warnings += new[: WARNINGS - len(warnings)]
        counts.update(outcome)
        counts["refused"] += len(refusals)
        for refusal in refusals:
            refused(refusal)
    names = ("added", "changed", "unchanged", "refused", "warned")
    return Imported(**{name: counts[name] for name in names}, warnings=tuple(warnings))


def _batches(lines: Iterable[tuple[int, Line]]) -> Iterator[NumberedLines]:
    """Lines in batches. A prefix map is a separate batch: later lines may refer to it."""
    remaining = iter(lines)
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


def _import_batch(
    database: Database, batch: NumberedLines
) -> tuple[Counter[str], list[Refusal], list[LineWarning]]:
    """Counts by outcome, and refused lines and warnings in order."""
    invalid: list[Refusal] = []
    parsed: list[tuple[int, rows.Row, State | None]] = []
    for place, line in batch:
        if isinstance(line, Refusal):
            invalid.append(line)
        elif isinstance(line, NewSubscription):
            try:
                parsed.append((place, rows.row_of(line), line.state))
            except CatalogError as error:
                invalid.append(Refusal(place, error.code, error.reason))

    def work(transaction: WriteTransaction) -> tuple[Counter[str], list[Refusal], list[LineWarning]]:
        counts: Counter[str] = Counter()
        refusals: list[Refusal] = []
        warnings: list[LineWarning] = []
        shared = {(row["tenant"], row["prefix_map"]) for _, row, _ in parsed if row["prefix_map"]}
        maps = mutations.find_prefix_maps(transaction.connection, shared)
        keys = dict.fromkeys((row["tenant"], row["id"]) for _, row, _ in parsed)
        plan = UpsertPlan(transaction, mutations.find_rows(transaction.connection, keys))
        for place, row, state in parsed:
            try:
                query = rows.check(row, maps)
                check_uses(transaction.connection, row, query.data, maps)
            except QueryError as error:
                refusals.append(Refusal(place, error.code, error.reason, error.column))
            except CatalogError as error:
                refusals.append(Refusal(place, error.code, error.reason))
            else:
                counts[plan.put(row, state, query.data)] += 1
                warnings += [LineWarning(place, one.code, one.reason, one.column) for one in query.warnings]
        plan.apply()
        return counts, sorted(invalid + refusals, key=lambda refusal: refusal.place), warnings

    return database.write(work)


def _import_map(database: Database, place: int, prefix_map: PrefixMap) -> tuple[Counter[str], list[Refusal]]:
    def work(transaction: WriteTransaction) -> tuple[Counter[str], list[Refusal]]:
        try:
            return Counter([mutations.put_map(transaction, prefix_map)]), []
        except CatalogError as error:
            # Some subscriptions may have been revised before the invalid one was found.
            transaction.changed = False
            return Counter(), [Refusal(place, error.code, error.reason)]

    return database.write(work)
