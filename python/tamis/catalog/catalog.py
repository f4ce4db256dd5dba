"""The catalog of subscriptions: add, change, pause, list, import, export. Each call is one transaction."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, select, tuple_

from tamis.catalog import mutations, rows
from tamis.catalog.accepted import Accepted
from tamis.catalog.changes import Changes, changes_since
from tamis.catalog.data_sets import DataSets
from tamis.catalog.data_uses import check_uses
from tamis.catalog.database import BUSY_SECONDS, Database, WriteTransaction, identity_and_version
from tamis.catalog.dead_deliveries import DeadDeliveries
from tamis.catalog.importing import import_lines
from tamis.catalog.mailbox import Mailbox
from tamis.catalog.mutations import UpsertPlan
from tamis.catalog.outgoing import Outgoing
from tamis.catalog.routes import Routes
from tamis.catalog.schema import prefix_maps, subscriptions
from tamis.catalog.tokens import Tokens
from tamis.catalog.webhooks import Webhooks
from tamis.errors import CatalogError
from tamis.model.matching import QueryWarning
from tamis.model.subscription import (
    Imported,
    Namespaces,
    NewSubscription,
    PrefixMap,
    Refusal,
    State,
    Subscription,
)
from tamis.model.subscription_lines import Line
from tamis.model.version import Version

PAGE = 1_000
"""How many rows an export holds in memory."""


class Catalog:
    """Subscriptions in a database. Any number of processes may use it at the same time."""

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open a catalog: `sqlite:///FILE`, a bare path for the same, or `postgresql://USER@HOST/NAME`.

        Creates the tables of a new catalog and migrates those of an older one. `busy_seconds`: how long to
        wait for other writers of an SQLite file.
        """
        self._database = Database(url, busy_seconds)
        self.routes = Routes(self._database)
        self.data = DataSets(self._database)
        # Tables of the service: no generation depends on them.
        self.tokens = Tokens(self._database)
        self.accepted = Accepted(self._database)
        self.mailbox = Mailbox(self._database)
        self.webhooks = Webhooks(self._database)
        self.outgoing = Outgoing(self._database)
        self.dead_deliveries = DeadDeliveries(self._database)

    def close(self) -> None:
        """Close its connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # One subscription

    def add(self, new: NewSubscription) -> Subscription:
        """Add a subscription; raises `QueryError` if its query is refused.

        Idempotent: adding a subscription that exists with the same content changes nothing.
        """
        if new.id is None:
            new = dataclasses.replace(new, id=rows.new_id())
        row = rows.row_of(new)

        def work(transaction: WriteTransaction) -> Subscription:
            key = row["tenant"], row["id"]
            present = mutations.find_rows(transaction.connection, [key])
            outcome, warnings = self._upsert(transaction, row, new.state, present)
            if present and outcome == "changed":
                reason = (
                    f"subscription {row['id']} exists with other content; change it, or choose another id"
                )
                raise CatalogError("subscription-exists", reason)
            return dataclasses.replace(self._get(transaction.connection, key), warnings=warnings)

        return self._database.write(work)

    def change(
        self,
        id: str,
        *,
        tenant: str = "",
        subscriber: str | None = None,
        query: str | None = None,
        namespaces: Namespaces | None = None,
        delivery_target: str | None = None,
    ) -> Subscription:
        """Change the given fields of a subscription. A change makes a new revision."""

        def work(transaction: WriteTransaction) -> Subscription:
            present = self._get(transaction.connection, (tenant, id))
            changed = NewSubscription(
                id=id,
                tenant=tenant,
                subscriber=present.subscriber if subscriber is None else subscriber,
                query=present.query if query is None else query,
                namespaces=present.namespaces if namespaces is None else namespaces,
                delivery_target=present.delivery_target if delivery_target is None else delivery_target,
            )
            before = mutations.find_rows(transaction.connection, [(tenant, id)])
            _, warnings = self._upsert(transaction, rows.row_of(changed), None, before)
            return dataclasses.replace(self._get(transaction.connection, (tenant, id)), warnings=warnings)

        return self._database.write(work)

    def remove(self, id: str, *, tenant: str = "") -> bool:
        """Remove a subscription; False if there is none."""

        def work(transaction: WriteTransaction) -> bool:
            row = mutations.find_rows(transaction.connection, [(tenant, id)]).get((tenant, id))
            if row is not None:
                mutations.remove(transaction, row)
            return row is not None

        return self._database.write(work)

    def pause(self, id: str, *, tenant: str = "") -> Subscription:
        """Stop matching messages against a subscription until `resume`."""
        return self._set_state(tenant, id, State.PAUSED)

    def resume(self, id: str, *, tenant: str = "") -> Subscription:
        """Match messages against a subscription again."""
        return self._set_state(tenant, id, State.ACTIVE)

    def get(self, id: str, *, tenant: str = "") -> Subscription:
        """A subscription; `CatalogError` if there is none."""
        return self._database.read(lambda connection: self._get(connection, (tenant, id)))

    def query(self, id: str, revision: int, *, tenant: str = "") -> tuple[str, Mapping[str, str]]:
        """The query of a revision with its prefixes; `CatalogError` if that revision is not current."""

        def work(connection: Connection) -> tuple[str, Mapping[str, str]]:
            row = mutations.find_rows(connection, [(tenant, id)]).get((tenant, id))
            if row is None or row["revision"] != revision:
                raise rows.unknown(tenant, id)
            shared = [] if row["prefix_map"] is None else [(tenant, row["prefix_map"])]
            return row["query"], rows.prefixes_of(row, mutations.find_prefix_maps(connection, shared))

        return self._database.read(work)

    def _upsert(
        self,
        transaction: WriteTransaction,
        row: rows.Row,
        state: State | None,
        present: Mapping[rows.Key, rows.Row],
    ) -> tuple[str, tuple[QueryWarning, ...]]:
        """Add or change a subscription; returns the outcome and the warnings of the query."""
        shared = [] if row["prefix_map"] is None else [(row["tenant"], row["prefix_map"])]
        maps = mutations.find_prefix_maps(transaction.connection, shared)
        query = rows.check(row, maps)
        check_uses(transaction.connection, row, query.data, maps)
        plan = UpsertPlan(transaction, present)
        outcome = plan.put(row, state, query.data)
        plan.apply()
        return outcome, query.warnings

    def _set_state(self, tenant: str, id: str, state: State) -> Subscription:
        def work(transaction: WriteTransaction) -> Subscription:
            present = self._get(transaction.connection, (tenant, id))
            if present.state != state:
                mutations.set_state(transaction, [present.number], state)
            return self._get(transaction.connection, (tenant, id))

        return self._database.write(work)

    def _get(self, connection: Connection, key: rows.Key) -> Subscription:
        by_key = (subscriptions.c.tenant == key[0]) & (subscriptions.c.id == key[1])
        row = connection.execute(select(subscriptions).where(by_key)).mappings().first()
        if row is None:
            raise rows.unknown(*key)
        return rows.subscription_of(row)

    # Many subscriptions

    def list(
        self,
        *,
        tenant: str | None = None,
        subscriber: str | None = None,
        state: State | None = None,
        text: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 100,
    ) -> Sequence[Subscription]:
        """Subscriptions by tenant and id, a page at a time.

        `text` is a substring of the query, case-insensitive. `after` is the tenant and id of the last
        subscription of the previous page.
        """
        table = subscriptions.c
        page = select(subscriptions).order_by(table.tenant, table.id).limit(limit)
        if tenant is not None:
            page = page.where(table.tenant == tenant)
        if subscriber is not None:
            page = page.where(table.subscriber == subscriber)
        if state is not None:
            page = page.where(table.state == state.value)
        if text is not None:
            page = page.where(table.query.icontains(text, autoescape=True))
        if after is not None:
            page = page.where(tuple_(table.tenant, table.id) > after)
        return self._database.read(
            lambda connection: [rows.subscription_of(row) for row in connection.execute(page).mappings()]
        )

    def import_(self, given: Iterable[tuple[int, Line]], refused: Callable[[Refusal], None]) -> Imported:
        """Upsert subscriptions and prefix maps, in batches; the counts of what changed.

        Calls `refused` for each refused line and continues with the others. Idempotent: a subscription
        without an id gets a hash of its content as id.
        """
        return import_lines(self._database, given, refused)

    def export(self, *, tenant: str | None = None) -> Iterator[PrefixMap | Subscription]:
        """One snapshot of the catalog in the order `import_` needs: prefix maps, then subscriptions."""
        with self._database.snapshot() as connection:
            yield from self._maps(connection, tenant)
            table = subscriptions.c
            chosen = select(subscriptions).order_by(table.tenant, table.id)
            if tenant is not None:
                chosen = chosen.where(table.tenant == tenant)
            streamed = connection.execution_options(stream_results=True).execute(chosen)
            for row in streamed.yield_per(PAGE).mappings():
                yield rows.subscription_of(row)

    # Prefix maps

    def put_prefixes(self, given: PrefixMap) -> None:
        """Upsert a prefix map that subscriptions of its tenant can name.

        A change makes new revisions of the subscriptions that use the map. If it would make one of
        their queries invalid, raises `CatalogError` and changes nothing.
        """
        self._database.write(lambda transaction: mutations.put_map(transaction, given))

    def prefixes(self, *, tenant: str | None = None) -> Sequence[PrefixMap]:
        """The prefix maps of all tenants, or of one."""
        return self._database.read(lambda connection: self._maps(connection, tenant))

    def remove_prefixes(self, name: str, *, tenant: str = "") -> bool:
        """Remove a prefix map; False if there is none. `CatalogError` if a subscription uses it."""
        return self._database.write(lambda transaction: mutations.remove_map(transaction, (tenant, name)))

    def _maps(self, connection: Connection, tenant: str | None) -> Sequence[PrefixMap]:
        chosen = select(prefix_maps).order_by(prefix_maps.c.tenant, prefix_maps.c.name)
        if tenant is not None:
            chosen = chosen.where(prefix_maps.c.tenant == tenant)
        return [rows.map_of(row) for row in connection.execute(chosen).mappings()]

    # Versions

    @property
    def version(self) -> Version:
        """The newest version; every change creates a new one."""
        return self._database.read(identity_and_version)[1]

    @contextmanager
    def changes(self, since: Version | None) -> Iterator[Changes]:
        """The changes since a version; read them inside the context.

        `Changes.since` is None, and all active subscriptions are additions, if `since` is None, if the
        change log no longer reaches back to it, or if this catalog never had it (a restored backup).
        """
        with self._database.snapshot() as connection:
            yield changes_since(connection, since)

    def compact(self, count: int) -> None:
        """Delete the change log of versions before this one."""
        self._database.compact(count)
