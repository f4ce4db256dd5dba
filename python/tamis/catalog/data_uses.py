"""Which subscriptions name which local data, and whether they may.

The table of uses is written with the subscriptions, in the same transaction, paused ones included. So data
that a subscription names cannot be removed, and generations hold only data that somebody uses.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Connection, and_, delete, insert, or_, select

import tamis.engine as engine
from tamis.catalog.rows import Key, Row, chunks, prefixes_of
from tamis.catalog.schema import data_sets, data_uses, data_versions
from tamis.model.data_set import UsedData
from tamis.model.hashed_file import File


def check_uses(connection: Connection, row: Row, names: Collection[str], maps: Mapping[Key, str]) -> None:
    """`QueryError` if a subscription names data that its tenant has not, or that cannot serve it."""
    if names:
        check_data_of(connection, row["query"], names, prefixes_of(row, maps), row["tenant"])


def check_data_of(
    connection: Connection, query: str, names: Collection[str], prefixes: Mapping[str, str], tenant: str
) -> None:
    """The same for a query of a tenant, which names this data."""
    sets, versions = data_sets.c, data_versions.c
    current = and_(versions.data_set == sets.number, versions.version == sets.current)
    sizes = select(sets.name, versions.records).join(data_versions, current)
    sizes = sizes.where(sets.name.in_(list(names)), or_(sets.tenant == tenant, sets.shared == 1))
    found = {one.name: one.records for one in connection.execute(sizes)}
    engine.check_data(query, found, prefixes)


def put_uses(
    connection: Connection, new: Mapping[Key, Collection[str]], revised: Mapping[Key, Collection[str]]
) -> None:
    """Record the data that new and revised subscriptions name."""
    remove_uses(connection, revised)
    rows = [
        {"name": name, "tenant": tenant, "subscription": id}
        for uses in (new, revised)
        for (tenant, id), names in uses.items()
        for name in sorted(names)
    ]
    if rows:
        connection.execute(insert(data_uses), rows)


def remove_uses(connection: Connection, keys: Iterable[Key]) -> None:
    """Forget what some subscriptions name."""
    if connection.execute(select(data_uses.c.name).limit(1)).first() is None:
        return
    ids: dict[str, list[str]] = {}
    for tenant, id in keys:
        ids.setdefault(tenant, []).append(id)
    for tenant, all_ids in ids.items():
        for some in chunks(all_ids):
            of_some = and_(data_uses.c.tenant == tenant, data_uses.c.subscription.in_(some))
            connection.execute(delete(data_uses).where(of_some))


def used_data(connection: Connection) -> Sequence[UsedData]:
    """The current version of each data set that a tenant's subscriptions name, by tenant and name."""
    sets, versions, uses = data_sets.c, data_versions.c, data_uses.c
    current = and_(versions.data_set == sets.number, versions.version == sets.current)
    columns = (sets.shared, sets.tenant, sets.name, versions.version, versions.manifest, versions.files)
    known = connection.execute(select(*columns).join(data_versions, current)).all()
    if not known:
        return ()
    tenants = connection.execute(select(uses.name, uses.tenant).distinct()).all()
    by_name: dict[str, list[str]] = {}
    for use in tenants:
        by_name.setdefault(use.name, []).append(use.tenant)
    found = []
    for one in known:
        files = files_of(one.files)
        for tenant in by_name.get(one.name, ()):
            if one.shared or one.tenant == tenant:
                found.append(UsedData(tenant, one.name, one.version, one.manifest, files))
    return sorted(found, key=lambda one: (one.tenant, one.name))


def files_of(text: str) -> dict[str, File]:
    """The files of a version from their column."""
    return {name: File(size, hash) for name, (size, hash) in json.loads(text).items()}


def files_text(files: Mapping[str, File]) -> str:
    """The column with the files of a version."""
    return json.dumps({name: [file.size, file.hash] for name, file in sorted(files.items())})
