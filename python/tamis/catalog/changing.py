"""How rows change: one plan for one subscription or for many, and the same for prefix maps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, tuple_, update

from tamis.catalog import rows
from tamis.catalog.database import Writing
from tamis.catalog.rows import Key, Row
from tamis.catalog.schema import prefix_maps, removals, retired, subscriptions
from tamis.errors import CatalogError, QueryError
from tamis.model.subscription import PrefixMap, State

KEYS = 5_000
"""So many rows are looked up by one statement; SQLite allows 32,766 parameters."""


def found(connection: Connection, keys: Iterable[Key]) -> dict[Key, Row]:
    """The subscriptions under some keys."""
    result: dict[Key, Row] = {}
    for tenant, ids in _by_tenant(keys):
        some = select(subscriptions).where(subscriptions.c.tenant == tenant, subscriptions.c.id.in_(ids))
        for row in connection.execute(some).mappings():
            result[row["tenant"], row["id"]] = dict(row)
    return result


def _by_tenant(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    """Keys as a tenant and some of its ids: a list of pairs is compared one by one, by PostgreSQL."""
    ids: dict[str, list[str]] = {}
    for tenant, id in keys:
        ids.setdefault(tenant, []).append(id)
    for tenant, all_ids in ids.items():
        for at in range(0, len(all_ids), KEYS):
            yield tenant, all_ids[at : at + KEYS]


def maps_of(connection: Connection, keys: Iterable[Key]) -> dict[Key, str]:
    """The prefixes of some shared maps."""
    wanted = list(keys)
    if not wanted:
        return {}
    by_key = tuple_(prefix_maps.c.tenant, prefix_maps.c.name)
    chosen = connection.execute(select(prefix_maps).where(by_key.in_(wanted)))
    return {(row.tenant, row.name): row.prefixes for row in chosen}


class Plan:
    """Subscriptions to put in place, in order, and what that comes to."""

    def __init__(self, writing: Writing, present: Mapping[Key, Row]) -> None:
        self._writing = writing
        self._present = present
        self._wanted: dict[Key, Row] = {}

    def put(self, row: Row, state: State | None) -> str:
        """Have a subscription be so: `added`, `changed` or `unchanged`."""
        key = row["tenant"], row["id"]
        before = self._wanted.get(key) or self._present.get(key)
        if before is None:
            self._wanted[key] = row | {"state": (state or State.ACTIVE).value}
            return "added"
        wanted = row | {"state": before["state"] if state is None else state.value}
        if not _revised(before, wanted) and wanted["state"] == before["state"]:
            return "unchanged"
        self._wanted[key] = wanted
        return "changed"

    def carry_out(self) -> None:
        """Write what differs in the end."""
        new: list[Row] = []
        revised: list[tuple[Row, Row]] = []
        moved: dict[str, list[int]] = {state: [] for state in State}
        for key, wanted in self._wanted.items():
            before = self._present.get(key)
            if before is None:
                new.append(wanted)
            elif _revised(before, wanted):
                revised.append((before, wanted))
            elif wanted["state"] != before["state"]:
                moved[wanted["state"]].append(before["number"])
        if new:
            self._insert(new)
        if revised:
            self._revise(revised)
        for state, numbers in moved.items():
            set_state(self._writing, numbers, State(state))

    def _insert(self, new: list[Row]) -> None:
        writing = self._writing
        last = self._last_revisions([(row["tenant"], row["id"]) for row in new])
        for row in new:
            row["number"] = writing.next_number()
            row["revision"] = last.get((row["tenant"], row["id"]), 0) + 1
            row["created"] = row["changed"] = writing.now
            row["version"] = writing.version
        writing.connection.execute(insert(subscriptions), new)
        writing.changed = True

    def _last_revisions(self, keys: list[Key]) -> dict[Key, int]:
        """The last revisions of those that were there once."""
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
        writing = self._writing
        columns = (*rows.ASKED_FOR, "state", "number", "revision", "changed", "version")
        values: list[Row] = []
        for before, wanted in revised:
            fresh = {"number": writing.next_number(), "revision": before["revision"] + 1}
            times = {"changed": writing.now, "version": writing.version}
            values.append(wanted | fresh | times | {"before": before["number"]})
        by_number = subscriptions.c.number == bindparam("before")
        changed = update(subscriptions).where(by_number).values({name: bindparam(name) for name in columns})
        writing.connection.execute(changed, values)
        active = [before["number"] for before, _ in revised if before["state"] == State.ACTIVE]
        log_removals(writing, active)


def _revised(before: Row, wanted: Row) -> bool:
    return any(before[column] != wanted[column] for column in rows.ASKED_FOR)


def set_state(writing: Writing, numbers: Sequence[int], state: State) -> None:
    """Pause subscriptions that are active, or resume paused ones."""
    for at in range(0, len(numbers), KEYS):
        some = numbers[at : at + KEYS]
        times: dict[str, Any] = {"changed": writing.now, "version": writing.version}
        moved = update(subscriptions).where(subscriptions.c.number.in_(some))
        writing.connection.execute(moved.values(state=state.value, **times))
        writing.changed = True
        if state is State.PAUSED:
            log_removals(writing, some)


def log_removals(writing: Writing, numbers: Sequence[int]) -> None:
    """Tell who follows the catalog that these numbers match no more."""
    writing.changed = True
    if numbers:
        values = [{"version": writing.version, "number": number} for number in numbers]
        writing.connection.execute(insert(removals), values)


def remove(writing: Writing, row: Row) -> None:
    """Remove a subscription; its last revision is kept."""
    connection = writing.connection
    connection.execute(delete(subscriptions).where(subscriptions.c.number == row["number"]))
    last = {"tenant": row["tenant"], "id": row["id"], "revision": row["revision"]}
    connection.execute(insert(retired), [last])
    log_removals(writing, [row["number"]] if row["state"] == State.ACTIVE else [])


def put_map(writing: Writing, given: PrefixMap) -> str:
    """Have a prefix map be so: `added`, `changed` or `unchanged`.

    Its users get new revisions. It stays as it is, with a `CatalogError`, if one of them would be
    no query any more.
    """
    row = rows.map_row_of(given)
    key = row["tenant"], row["name"]
    present = maps_of(writing.connection, [key]).get(key)
    if present == row["prefixes"]:
        return "unchanged"
    writing.changed = True
    if present is None:
        writing.connection.execute(insert(prefix_maps), [row])
        return "added"
    by_key = (prefix_maps.c.tenant == row["tenant"]) & (prefix_maps.c.name == row["name"])
    writing.connection.execute(update(prefix_maps).where(by_key).values(prefixes=row["prefixes"]))
    _revise_users(writing, key, row["prefixes"])
    return "changed"


def _revise_users(writing: Writing, key: Key, prefixes: str) -> None:
    table = subscriptions.c
    users = select(subscriptions).where(table.tenant == key[0], table.prefix_map == key[1])
    after = ""
    while True:
        page = users.where(table.id > after).order_by(table.id).limit(KEYS)
        some = [dict(row) for row in writing.connection.execute(page).mappings()]
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
            fresh = {"fresh": writing.next_number(), "before": row["number"]}
            values.append(fresh)
        revised = update(subscriptions).where(table.number == bindparam("before"))
        counted = {"revision": table.revision + 1, "changed": writing.now, "version": writing.version}
        writing.connection.execute(revised.values(number=bindparam("fresh"), **counted), values)
        log_removals(writing, [row["number"] for row in some if row["state"] == State.ACTIVE])


def remove_map(writing: Writing, key: Key) -> bool:
    """Remove a prefix map that nobody uses; whether it was there."""
    table = subscriptions.c
    user = select(table.id).where(table.tenant == key[0], table.prefix_map == key[1]).limit(1)
    used_by = writing.connection.execute(user).scalar()
    if used_by is not None:
        reason = f"subscription {used_by} uses the prefix map {key[1]}; remove or change its users first"
        raise CatalogError("prefix-map-used", reason)
    by_key = (prefix_maps.c.tenant == key[0]) & (prefix_maps.c.name == key[1])
    gone = writing.connection.execute(delete(prefix_maps).where(by_key)).rowcount > 0
    writing.changed |= gone
    return gone
