"""Data sets and their versions: create, update, revert, remove.

An update has three steps, so that no reader sees half of it and no sweep deletes its files:

    begin    a row names the files of the new version: sweeps keep them from now on
    …        the files are copied to the store; `renew` says that this goes on
    switch   one transaction makes the version the current one, and increments the catalog's version

A row that was not renewed for `ABANDONED` seconds is of a process that died: its files are no longer kept.
"""

import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, func, insert, or_, select, update

from tamis.catalog import rows
from tamis.catalog.data_uses import check_data_of, files_of, files_text
from tamis.catalog.database import Database, WriteTransaction
from tamis.catalog.rows import time_of
from tamis.catalog.schema import data_sets, data_uses, data_versions
from tamis.errors import CatalogError
from tamis.model.data_set import DataSet, DataVersion, NewDataSet
from tamis.model.hashed_file import File

KEPT = 5
"""Complete versions of a data set that are kept, with the current one: `revert` can go back to them."""

ABANDONED = 3600.0
"""Seconds after which an upload that was not renewed counts as given up."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class DataSets:
    """The data sets of a catalog. A tenant's own sets and the shared ones have different names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, new: NewDataSet) -> DataSet:
        """Create a data set without records. Idempotent; `data-exists` if it has other properties."""
        row = {
            "shared": int(new.shared),
            "tenant": "" if new.shared else rows.name(new.tenant, "tenant", may_be_empty=True),
            "name": _name(new.name),
            "key": new.key,
            "indexed": None if new.indexed is None else json.dumps(new.indexed),
        }

        def work(transaction: WriteTransaction) -> DataSet:
            connection = transaction.connection
            same_name = select(data_sets).where(data_sets.c.name == new.name)
            if not new.shared:
                same_name = same_name.where(or_(data_sets.c.tenant == new.tenant, data_sets.c.shared == 1))
            for present in connection.execute(same_name).mappings():
                if any(present[column] != value for column, value in row.items()):
                    raise _exists(new, present)
                return _data_set(connection, present)
            fresh = row | {
                "number": transaction.next_number(),
                "source": new.source,
                "created": transaction.now,
                "last": 0,
            }
            connection.execute(insert(data_sets), [fresh])
            transaction.changed = True
            return _data_set(connection, _found(connection, new.tenant, new.name))

        return self._database.write(work)

    def get(self, name: str, *, tenant: str = "") -> DataSet:
        """A data set that a tenant can use: its own or a shared one; `unknown-data` if there is none."""
        return self._database.read(lambda connection: _data_set(connection, _found(connection, tenant, name)))

    def list(self, *, tenant: str | None = None) -> Sequence[DataSet]:
        """The data sets that a tenant can use, or all, by name."""
        chosen = select(data_sets).order_by(data_sets.c.name, data_sets.c.tenant)
        if tenant is not None:
            chosen = chosen.where(or_(data_sets.c.tenant == tenant, data_sets.c.shared == 1))

        def work(connection: Connection) -> Sequence[DataSet]:
            return [_data_set(connection, row, tenant) for row in connection.execute(chosen).mappings().all()]

        return self._database.read(work)

    def versions(self, name: str, *, tenant: str = "") -> Sequence[DataVersion]:
        """The complete versions of a data set that are kept, the newest first."""

        def work(connection: Connection) -> Sequence[DataVersion]:
            number = _found(connection, tenant, name)["number"]
            return [_version(row) for row in _complete(connection, number)]

        return self._database.read(work)

    def users(self, name: str, *, tenant: str, limit: int = 100) -> Sequence[str]:
        """The ids of a tenant's subscriptions that name a data set, up to a limit."""
        uses = data_uses.c
        chosen = select(uses.subscription).where(uses.name == name, uses.tenant == tenant)
        chosen = chosen.order_by(uses.subscription).limit(limit)
        return self._database.read(lambda connection: list(connection.execute(chosen).scalars()))

    def check(self, query: str, names: Collection[str], prefixes: Mapping[str, str], *, tenant: str) -> None:
        """`QueryError` if a query names data that a tenant has not, or that cannot serve it."""
        if names:
            self._database.read(lambda connection: check_data_of(connection, query, names, prefixes, tenant))

    # An update

    def begin(
        self,
        name: str,
        *,
        tenant: str,
        manifest: str,
        files: Mapping[str, File],
        records: int,
        source: str,
    ) -> int:
        """Announce the files of a new version: sweeps keep them. Returns its number."""

        def work(connection: Connection) -> int:
            number = _found(connection, tenant, name)["number"]
            counted = update(data_sets).where(data_sets.c.number == number)
            counted = counted.values(last=data_sets.c.last + 1).returning(data_sets.c.last)
            version: int = connection.execute(counted).scalar_one()
            now = _now()
            row = {
                "data_set": number,
                "version": version,
                "manifest": manifest,
                "files": files_text(files),
                "records": records,
                "bytes": sum(file.size for file in files.values()),
                "source": source,
                "created": now,
                "uploading": now,
            }
            connection.execute(insert(data_versions), [row])
            return version

        return self._database.write_unversioned(work)

    def renew(self, name: str, version: int, *, tenant: str) -> None:
        """Say that the upload of a version goes on."""

        def work(connection: Connection) -> None:
            chosen = _one_version(_found(connection, tenant, name)["number"], version)
            renewed = update(data_versions).where(chosen, data_versions.c.uploading.is_not(None))
            connection.execute(renewed.values(uploading=_now()))

        self._database.write_unversioned(work)

    def switch(self, name: str, version: int, *, tenant: str, base: int | None) -> DataSet:
        """Make an uploaded version the current one; `data-changed` if `base` is no longer the current one.

        Versions before the last `KEPT` are forgotten.
        """

        def work(transaction: WriteTransaction) -> DataSet:
            connection = transaction.connection
            found = _found(connection, tenant, name)
            chosen = _one_version(found["number"], version)
            row = connection.execute(select(data_versions).where(chosen)).mappings().first()
            if row is None:
                reason = f"the upload of version {version} of {name} took too long without a sign of life"
                raise CatalogError("upload-lost", f"{reason}; update it again")
            if found["current"] == version:
                # The connection was lost during the commit.
                return _data_set(connection, found)
            if found["current"] != base:
                reason = f"{name} was updated meanwhile: it has version {found['current']} now, not {base}"
                raise CatalogError("data-changed", f"{reason}; update it again")
            connection.execute(update(data_versions).where(chosen).values(uploading=None))
            _set_current(transaction, found, version)
            _forget_old(connection, found["number"], version)
            return _data_set(connection, _found(connection, tenant, name))

        return self._database.write(work)

    def abandon(self, name: str, version: int, *, tenant: str) -> None:
        """Give up an upload: its files need not be kept."""

        def work(connection: Connection) -> None:
            chosen = _one_version(_found(connection, tenant, name)["number"], version)
            connection.execute(delete(data_versions).where(chosen, data_versions.c.uploading.is_not(None)))

        self._database.write_unversioned(work)

    # Other changes

    def revert(self, name: str, *, tenant: str = "", version: int | None = None) -> DataSet:
        """Make an older version the current one: the given one, or the one before the current one."""

        def work(transaction: WriteTransaction) -> DataSet:
            connection = transaction.connection
            found = _found(connection, tenant, name)
            kept = [row["version"] for row in _complete(connection, found["number"])]
            older = [one for one in kept if found["current"] is not None and one < found["current"]]
            target = version if version is not None else max(older, default=None)
            if target is None or target not in kept:
                which = "no older version" if version is None else f"no version {version}"
                shown = ", ".join(map(str, sorted(kept))) or "none"
                raise CatalogError("unknown-version", f"{name} has {which}; kept are: {shown}")
            if target != found["current"]:
                _set_current(transaction, found, target)
            return _data_set(connection, _found(connection, tenant, name))

        return self._database.write(work)

    def remove(self, name: str, *, tenant: str = "") -> bool:
        """Remove a data set; False if there is none. `data-in-use` if a subscription names it."""

        def work(transaction: WriteTransaction) -> bool:
            connection = transaction.connection
            found = _find(connection, tenant, name)
            if found is None:
                return False
            users = _uses_of(found)
            some = select(data_uses.c.subscription, data_uses.c.tenant).where(users).limit(3)
            named = [one.subscription for one in connection.execute(some)]
            if named:
                reason = f"subscriptions name {name}: {', '.join(named)}"
                raise CatalogError("data-in-use", f"{reason}; remove or change them first")
            connection.execute(delete(data_versions).where(data_versions.c.data_set == found["number"]))
            connection.execute(delete(data_sets).where(data_sets.c.number == found["number"]))
            transaction.changed = True
            return True

        return self._database.write(work)

    def kept_files(self) -> set[str]:
        """The files of all versions and of uploads in progress: a sweep of the store keeps them."""
        limit = _now() - int(ABANDONED * 1e6)
        columns = data_versions.c
        chosen = select(columns.files).where(or_(columns.uploading.is_(None), columns.uploading > limit))

        def work(connection: Connection) -> set[str]:
            return {file for text in connection.execute(chosen).scalars() for file in files_of(text)}

        return self._database.read(work)


def _find(connection: Connection, tenant: str, name: str) -> RowMapping | None:
    """The row of a tenant's own data set, or of a shared one."""
    mine = or_(data_sets.c.tenant == tenant, data_sets.c.shared == 1)
    chosen = select(data_sets).where(data_sets.c.name == name, mine)
    return connection.execute(chosen).mappings().first()


def _found(connection: Connection, tenant: str, name: str) -> RowMapping:
    row = _find(connection, tenant, name)
    if row is None:
        # The same for another tenant's data: its existence is not disclosed.
        raise CatalogError("unknown-data", f"there is no local data of the name `{name}`")
    return row


def _data_set(connection: Connection, row: RowMapping, tenant: str | None = None) -> DataSet:
    """A data set of a row; users are counted of a tenant, or of all that can use it."""
    current = None
    if row["current"] is not None:
        chosen = select(data_versions).where(_one_version(row["number"], row["current"]))
        current = _version(connection.execute(chosen).mappings().one())
    users = select(func.count()).select_from(data_uses).where(_uses_of(row))
    if tenant is not None:
        users = users.where(data_uses.c.tenant == tenant)
    return DataSet(
        name=row["name"],
        tenant=row["tenant"],
        shared=bool(row["shared"]),
        key=row["key"],
        indexed=None if row["indexed"] is None else tuple(json.loads(row["indexed"])),
        source=row["source"],
        created=time_of(row["created"]),
        current=current,
        users=connection.execute(users).scalar_one(),
    )


def _uses_of(row: RowMapping) -> Any:
    """Who names a data set: of all tenants if it is shared."""
    by_name = data_uses.c.name == row["name"]
    return by_name if row["shared"] else and_(by_name, data_uses.c.tenant == row["tenant"])


def _version(row: RowMapping) -> DataVersion:
    return DataVersion(
        number=row["version"],
        manifest=row["manifest"],
        files=files_of(row["files"]),
        records=row["records"],
        bytes=row["bytes"],
        source=row["source"],
        created=time_of(row["created"]),
    )


def _one_version(number: int, version: int) -> Any:
    return and_(data_versions.c.data_set == number, data_versions.c.version == version)


def _complete(connection: Connection, number: int) -> Sequence[RowMapping]:
    columns = data_versions.c
    chosen = select(data_versions).where(columns.data_set == number, columns.uploading.is_(None))
    return connection.execute(chosen.order_by(columns.version.desc())).mappings().all()


def _set_current(transaction: WriteTransaction, row: RowMapping, version: int) -> None:
    changed = update(data_sets).where(data_sets.c.number == row["number"])
    transaction.connection.execute(changed.values(current=version))
    transaction.changed = True


def _forget_old(connection: Connection, number: int, current: int) -> None:
    """Forget complete versions that are too old, and uploads that were given up."""
    complete = [row["version"] for row in _complete(connection, number)]
    old = [version for version in complete[KEPT:] if version != current]
    columns = data_versions.c
    abandoned = columns.uploading <= _now() - int(ABANDONED * 1e6)
    gone = and_(columns.data_set == number, or_(columns.version.in_(old), abandoned))
    connection.execute(delete(data_versions).where(gone))


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise CatalogError("data-name", f"`{name}` is no name of data: letters, digits, `-`, `_` and `.`")
    return rows.name(name, "name of the data")


def _exists(new: NewDataSet, present: RowMapping) -> CatalogError:
    if not new.shared and present["shared"]:
        reason = f"the operator shares data of the name {new.name}; choose another name"
    elif new.shared and not present["shared"]:
        reason = f"tenant `{present['tenant']}` has data of the name {new.name}; choose another name"
    else:
        reason = f"{new.name} exists with another key or other indexed paths; update it, or remove it first"
    return CatalogError("data-exists", reason)


def _now() -> int:
    return time.time_ns() // 1000
