"""Routes: what the neighbours of a broker want, in tables of their own. They are no subscriptions.

They share the version, the numbers and the log of removals with subscriptions, so that `changes_since` finds
them, and a generation shows both at one version. A change of a table is one transaction.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from tamis.catalog.database import Database, WriteTransaction
from tamis.catalog.mutations import log_removals
from tamis.catalog.rows import KEYS, chunks
from tamis.catalog.schema import established, route_tables, routes, subscriptions
from tamis.model.subscription import Established, State, Subscription
from tamis.network.tables import EMPTY, EVERYTHING, TableVersion, TenantRow, changed_hash, row_key


class Routes:
    """The tables of routes of a catalog, one for each link."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tables(self) -> Mapping[str, TableVersion]:
        """The version of each table, by link."""
        return self._database.read(lambda connection: route_tables_of(connection)[0])

    def of_numbers(self, numbers: Collection[int]) -> list[tuple[str, str]]:
        """The link and the query of those routes with these numbers that there still are, ordered by both."""

        def work(connection: Connection) -> list[tuple[str, str]]:
            found: list[tuple[str, str]] = []
            wanted = sorted(numbers)
            for at in range(0, len(wanted), KEYS):
                some = routes.c.number.in_(wanted[at : at + KEYS])
                rows = connection.execute(select(routes.c.link, routes.c.query).where(some))
                found += [(row.link, row.query) for row in rows]
            return sorted(found)

        return self._database.read(work)

    def replace(self, link: str, version: TableVersion, wanted: Collection[TenantRow]) -> bool:
        """Give a link exactly these rows; false, and no change, if they have not the hash of the version."""
        if version.hash not in (EVERYTHING, changed_hash(EMPTY, wanted, ())):
            return False

        def work(transaction: WriteTransaction) -> bool:
            of_link = select(routes.c.key, routes.c.number).where(routes.c.link == link)
            known = {row.key: row.number for row in transaction.connection.execute(of_link)}
            new = {row_key(row): row for row in wanted}
            self._write(
                transaction,
                link,
                version,
                [row for key, row in new.items() if key not in known],
                [number for key, number in known.items() if key not in new],
                len(new),
            )
            return True

        return self._database.write(work)

    def change(
        self,
        link: str,
        since: TableVersion,
        version: TableVersion,
        added: Collection[TenantRow],
        removed: Collection[TenantRow],
    ) -> bool:
        """Add and remove rows of a table; false, and no change, if it is at another version.

        Or if the result has not the hash of the new version.
        """
        if EVERYTHING in (since.hash, version.hash) or version.hash != changed_hash(
            since.hash, added, removed
        ):
            return False
        if not added and not removed:
            return self._rename(link, since, version)

        def work(transaction: WriteTransaction) -> bool:
            connection = transaction.connection
            by_link = select(route_tables).where(route_tables.c.link == link)
            present = connection.execute(by_link).mappings().one_or_none()
            if present is None:
                return False
            now = _version(present)
            if now == version:
                # The connection was lost during the commit.
                return True
            old = self._numbers(connection, link, map(row_key, removed))
            new = self._numbers(connection, link, map(row_key, added))
            if now != since or len(old) != len(removed) or new:
                return False
            self._write(transaction, link, version, added, old, present["rows"] + len(added) - len(removed))
            return True

        return self._database.write(work)

    def keep(self, links: Collection[str]) -> None:
        """Remove the tables of all other links: the network has changed."""

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            for link in set(connection.execute(select(route_tables.c.link)).scalars()) - set(links):
                gone = list(
                    connection.execute(select(routes.c.number).where(routes.c.link == link)).scalars()
                )
                self._remove(transaction, gone)
                connection.execute(delete(route_tables).where(route_tables.c.link == link))
                transaction.changed = True

        if set(self.tables()) - set(links):
            self._database.write(work)

    # Which subscriptions are established

    def established(self) -> Mapping[str, int]:
        """By broker: subscriptions up to this version of the catalog get what enters the network there."""

        def work(connection: Connection) -> Mapping[str, int]:
            return {row.broker: row.version for row in connection.execute(select(established))}

        return self._database.read(work)

    def established_of(self, one: Subscription, brokers: Sequence[str]) -> Established:
        """At which of some brokers a subscription is established."""

        def work(connection: Connection) -> Established:
            active = (subscriptions.c.number == one.number) & (subscriptions.c.state == State.ACTIVE.value)
            version = connection.execute(select(subscriptions.c.version).where(active)).scalar()
            known: set[str] = set()
            if version is not None:
                since = select(established.c.broker).where(established.c.version >= version)
                known.update(connection.execute(since).scalars())
            return Established(
                tuple(name for name in brokers if name in known),
                tuple(name for name in brokers if name not in known),
            )

        return self._database.read(work)

    def establish(self, versions: Mapping[str, int]) -> None:
        """Replace what `established` returns."""

        def work(connection: Connection) -> None:
            connection.execute(delete(established))
            if versions:
                rows = [{"broker": broker, "version": version} for broker, version in versions.items()]
                connection.execute(insert(established), rows)

        self._database.write_unversioned(work)

    def _rename(self, link: str, since: TableVersion, version: TableVersion) -> bool:
        """Give a table another version without other rows: the catalog's version stays."""
        table = route_tables.c
        known = (table.link == link) & (table.count == since.count) & (table.mark == since.mark)
        renamed = update(route_tables).where(known, table.hash == since.hash)
        renamed = renamed.values(count=version.count, mark=version.mark)
        same = (table.link == link) & (table.count == version.count) & (table.mark == version.mark)

        def work(connection: Connection) -> bool:
            if connection.execute(renamed).rowcount > 0:
                return True
            return connection.execute(select(route_tables).where(same)).first() is not None

        return self._database.write_unversioned(work)

    def _numbers(self, connection: Connection, link: str, keys: Iterable[str]) -> list[int]:
        """The numbers of those of a table's rows that there are."""
        found: list[int] = []
        for some in chunks(list(keys)):
            known = select(routes.c.number).where(routes.c.link == link, routes.c.key.in_(some))
            found += connection.execute(known).scalars()
        return found

    def _write(
        self,
        transaction: WriteTransaction,
        link: str,
        version: TableVersion,
        added: Collection[TenantRow],
        removed: list[int],
        count: int,
    ) -> None:
        connection = transaction.connection
        self._remove(transaction, removed)
        values = [
            {
                "number": transaction.next_number(),
                "link": link,
                "key": row_key((tenant, query)),
                "tenant": tenant,
                "query": query,
                "version": transaction.version,
            }
            for tenant, query in added
        ]
        if values:
            connection.execute(insert(routes), values)
        connection.execute(delete(route_tables).where(route_tables.c.link == link))
        now = {"link": link, "count": version.count, "mark": version.mark, "hash": version.hash}
        connection.execute(insert(route_tables), [now | {"rows": count}])
        transaction.changed = True

    def _remove(self, transaction: WriteTransaction, numbers: list[int]) -> None:
        for at in range(0, len(numbers), KEYS):
            some = numbers[at : at + KEYS]
            transaction.connection.execute(delete(routes).where(routes.c.number.in_(some)))
            log_removals(transaction, some)


def route_tables_of(connection: Connection) -> tuple[Mapping[str, TableVersion], int]:
    """The version of each table by its link, and how many routes there are in all."""
    rows = connection.execute(select(route_tables)).mappings().all()
    return {row["link"]: _version(row) for row in rows}, sum(row["rows"] for row in rows)


def _version(row: RowMapping) -> TableVersion:
    return TableVersion(row["count"], row["mark"], row["hash"])
