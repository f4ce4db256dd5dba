"""Inserts, updates and removals of subscriptions and prefix maps.

An upsert of one subscription and an import of many go through the same `UpsertPlan`. A revision gets a new
number; the old number goes to the log of removals, so that `changes_since` finds it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, tuple_, update

from tamis.catalog import rows
from tamis.catalog.data_uses import put_uses, remove_uses
from tamis.catalog.database import WriteTransaction
from tamis.catalog.rows import KEYS, Key, Row, chunks
from tamis.catalog.schema import prefix_maps, removals, retired, subscriptions
from tamis.errors import CatalogError, QueryError
from tamis.model.subscription import PrefixMap, State


def find_rows(connection: Connection, keys: Iterable[Key]) -> dict[Key, Row]:
    """The rows of some subscriptions, by key."""
    result: dict[Key, Row] = {}
    for tenant, ids in _by_tenant(keys):
        some = select(subscriptions).where(subscriptions.c.tenant == tenant, subscriptions.c.id.in_(ids))
        for row in connection.execute(some).mappings():
            result[row["tenant"], row["id"]] = dict(row)
    return result


def _by_tenant(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    """Keys grouped by tenant, in chunks: PostgreSQL compares a list of pairs one by one."""
    ids: dict[str, list[str]] = {}
    for tenant, id in keys:
        ids.setdefault(tenant, []).append(id)
    for tenant, all_ids in ids.items():
        for some in chunks(all_ids):
            yield tenant, some


def find_prefix_maps(connection: Connection, keys: Iterable[Key]) -> dict[Key, str]:
    """The prefixes of some prefix maps, by key."""
    chosen_keys = list(keys)
    if not chosen_keys:
        return {}
    by_key = tuple_(prefix_maps.c.tenant, prefix_maps.c.name)
    chosen = connection.execute(select(prefix_maps).where(by_key.in_(chosen_keys)))
    return {(row.tenant, row.name): row.prefixes for row in chosen}


class UpsertPlan:
    """Upserts of subscriptions, in order; `apply` writes the net difference."""

    def __init__(self, transaction: WriteTransaction, present: Mapping[Key, Row]) -> None:
        self._writing = transaction
        self._present = present
        self._desired: dict[Key, Row] = {}
        self._data: dict[Key, Collection[str]] = {}

    def put(self, row: Row, state: State | None, data: Collection[str] = ()) -> str:
        """Plan one upsert: `added`, `changed` or `unchanged`. `data`: the local data that the query names."""
        key = row["tenant"], row["id"]
        before = self._desired.get(key) or self._present.get(key)
        self._data[key] = data
        if before is None:
            self._desired[key] = row | {"state": (state or State.ACTIVE).value}
            return "added"
        desired = row | {"state": before["state"] if state is None else state.value}
        if not _is_revised(before, desired) and desired["state"] == before["state"]:
            return "unchanged"
        self._desired[key] = desired
        return "changed"

    def apply(self) -> None:
        """Write the rows that differ."""
        new: list[Row] = []
        revised: list[tuple[Row, Row]] = []
        state_changes: dict[str, list[int]] = {state: [] for state in State}
        for key, desired in self._desired.items():
            before = self._present.get(key)
            if before is None:
                new.append(desired)
            elif _is_revised(before, desired):
                revised.append((before, desired))
            elif desired["state"] != before["state"]:
                state_changes[desired["state"]].append(before["number"])
        if new:
            self._insert(new)
        if revised:
            self._revise(revised)
        new_keys, revised_keys = map(_key, new), (_key(desired) for _, desired in revised)
        put_uses(
            self._writing.connection,
            {key: self._data[key] for key in new_keys},
            {key: self._data[key] for key in revised_keys},
        )
        for state, numbers in state_changes.items():
            set_state(self._writing, numbers, State(state))

    def _insert(self, new: list[Row]) -> None:
        transaction = self._writing
        last = self._last_revisions([(row["tenant"], row["id"]) for row in new])
        for row in new:
            row["number"] = transaction.next_number()
            row["revision"] = last.get((row["tenant"], row["id"]), 0) + 1
            row["created"] = row["changed"] = transaction.now
            row["version"] = transaction.version
        transaction.connection.execute(insert(subscriptions), new)
        transaction.changed = True

    def _last_revisions(self, keys: list[Key]) -> dict[Key, int]:
        """The last revisions of removed subscriptions with these keys."""
        connection = self._writing.connection
        if connection.execute(select(retired.c.id).limit(1)).first() is None:
            return {}
        last: dict[Key, int] = {}
        for tenant, ids in _by_tenant(keys):
            again = delete(retired).where(retired.c.tenant == tenant, retired.c.id.in_(ids))
            for row in connection.execute(again.returning(retired)):
                last[row.tenant, row.id] = row.revision
        return last

    def _revise(self, revised: list[tuple[Row, Row]]) -> None:
        transaction = self._writing
        columns = (*rows.REVISION_COLUMNS, "state", "number", "revision", "changed", "version")
        values: list[Row] = []
        for before, desired in revised:
            fresh = {"number": transaction.next_number(), "revision": before["revision"] + 1}
            times = {"changed": transaction.now, "version": transaction.version}
            values.append(desired | fresh | times | {"before": before["number"]})
        by_number = subscriptions.c.number == bindparam("before")
        changed = update(subscriptions).where(by_number).values({name: bindparam(name) for name in columns})
        transaction.connection.execute(changed, values)
        active = [before["number"] for before, _ in revised if before["state"] == State.ACTIVE]
        log_removals(transaction, active)


def _key(row: Row) -> Key:
    return row["tenant"], row["id"]


def _is_revised(before: Row, desired: Row) -> bool:
    return any(before[column] != desired[column] for column in rows.REVISION_COLUMNS)


def set_state(transaction: WriteTransaction, numbers: Sequence[int], state: State) -> None:
    """Pause subscriptions that are active, or resume paused ones."""
    for at in range(0, len(numbers), KEYS):
        some = numbers[at : at + KEYS]
        times: dict[str, Any] = {"changed": transaction.now, "version": transaction.version}
        moved = update(subscriptions).where(subscriptions.c.number.in_(some))
        transaction.connection.execute(moved.values(state=state.value, **times))
        transaction.changed = True
        if state is State.PAUSED:
            log_removals(transaction, some)


def log_removals(transaction: WriteTransaction, numbers: Sequence[int]) -> None:
    """Log that these numbers no longer match."""
    transaction.changed = True
    if numbers:
        values = [{"version": transaction.version, "number": number} for number in numbers]
        transaction.connection.execute(insert(removals), values)


def remove(transaction: WriteTransaction, row: Row) -> None:
    """Remove a subscription; keep its last revision, so that delivery ids never repeat."""
    connection = transaction.connection
    connection.execute(delete(subscriptions).where(subscriptions.c.number == row["number"]))
    remove_uses(connection, [_key(row)])
    last = {"tenant": row["tenant"], "id": row["id"], "revision": row["revision"]}
    connection.execute(insert(retired), [last])
    log_removals(transaction, [row["number"]] if row["state"] == State.ACTIVE else [])


def put_map(transaction: WriteTransaction, prefix_map: PrefixMap) -> str:
    """Upsert a prefix map: `added`, `changed` or `unchanged`.

    Subscriptions that use it get new revisions. Raises `CatalogError` if one of their queries would
    become invalid.
    """
    row = rows.map_row_of(prefix_map)
    key = row["tenant"], row["name"]
    present = find_prefix_maps(transaction.connection, [key]).get(key)
    if present == row["prefixes"]:
        return "unchanged"
    transaction.changed = True
    if present is None:
        transaction.connection.execute(insert(prefix_maps), [row])
        return "added"
    by_key = (prefix_maps.c.tenant == row["tenant"]) & (prefix_maps.c.name == row["name"])
    transaction.connection.execute(update(prefix_maps).where(by_key).values(prefixes=row["prefixes"]))
    _revise_users(transaction, key, row["prefixes"])
    return "changed"


def _revise_users(transaction: WriteTransaction, key: Key, prefixes: str) -> None:
    table = subscriptions.c
    users = select(subscriptions).where(table.tenant == key[0], table.prefix_map == key[1])
    after = ""
    while True:
        page = users.where(table.id > after).order_by(table.id).limit(KEYS)
        some = [dict(row) for row in transaction.connection.execute(page).mappings()]
        if not some:
            return
        after = some[-1]["id"]
        values = []
        for row in some:
            try:
                rows.check(row, {key: prefixes})
            except QueryError as error:
                reason = f"the query of subscription {row['id']} would be refused: {error}; change it first"
                raise CatalogError("prefix-map-used", reason) from error
            fresh = {"fresh": transaction.next_number(), "before": row["number"]}
            values.append(fresh)
        revised = update(subscriptions).where(table.number == bindparam("before"))
        counted = {"revision": table.revision + 1, "changed": transaction.now, "version": transaction.version}
        transaction.connection.execute(revised.values(number=bindparam("fresh"), **counted), values)
        log_removals(transaction, [row["number"] for row in some if row["state"] == State.ACTIVE])


def remove_map(transaction: WriteTransaction, key: Key) -> bool:
    """Remove an unused prefix map; False if there is none."""
    table = subscriptions.c
    user = select(table.id).where(table.tenant == key[0], table.prefix_map == key[1]).limit(1)
    used_by = transaction.connection.execute(user).scalar()
    if used_by is not None:
        reason = f"subscription {used_by} uses the prefix map {key[1]}; remove or change its users first"
        raise CatalogError("prefix-map-used", reason)
    by_key = (prefix_maps.c.tenant == key[0]) & (prefix_maps.c.name == key[1])
    gone = transaction.connection.execute(delete(prefix_maps).where(by_key)).rowcount > 0
    transaction.changed |= gone
    return gone
