"""The catalog: its verbs, each of them one transaction."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, select, tuple_

from tamis.catalog import changing, rows
from tamis.catalog.accepted import Accepted
from tamis.catalog.burials import Burials
from tamis.catalog.changes import Changes, changes_since
from tamis.catalog.changing import Plan
from tamis.catalog.database import Database, Writing, identity_and_version
from tamis.catalog.importing import import_lines
from tamis.catalog.mailbox import Mailbox
from tamis.catalog.outgoing import Outgoing
from tamis.catalog.schema import prefix_maps, subscriptions
from tamis.catalog.tokens import Tokens
from tamis.catalog.webhooks import Webhooks
from tamis.errors import CatalogError
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
"""So many subscriptions are held at once by an export."""


class Catalog:
    """Subscriptions in a database, for as many processes as like to use it."""

    def __init__(self, url: str) -> None:
        """Open a catalog: `sqlite:///FILE`, a bare path for the same, or `postgresql://USER@HOST/NAME`.

        It is made if there is none, and brought to this tamis's schema if it is older.
        """
        self._database = Database(url)
        # What the service keeps beside the subscriptions; no generation depends on it.
        self.tokens = Tokens(self._database)
        self.accepted = Accepted(self._database)
        self.mailbox = Mailbox(self._database)
        self.webhooks = Webhooks(self._database)
        self.outgoing = Outgoing(self._database)
        self.burials = Burials(self._database)

    def close(self) -> None:
        """Close its connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # One subscription.

    def add(self, asked: NewSubscription) -> Subscription:
        """Add a subscription; `QueryError` if its query is none.

        Adding what is there already, with the same content, changes nothing.
        """
        if asked.id is None:
            asked = dataclasses.replace(asked, id=rows.new_id())
        row = rows.row_of(asked)

        def work(writing: Writing) -> Subscription:
            key = row["tenant"], row["id"]
            present = changing.found(writing.connection, [key])
            outcome = self._put(writing, row, asked.state, present)
            if present and outcome == "changed":
                reason = f"there is another subscription {row['id']}; change it, or take another id"
                raise CatalogError("subscription-exists", reason)
            return self._found(writing.connection, key)

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
        """Change what is given of a subscription; it gets a new revision if that differs."""

        def work(writing: Writing) -> Subscription:
            present = self._found(writing.connection, (tenant, id))
            asked = NewSubscription(
                id=id,
                tenant=tenant,
                subscriber=present.subscriber if subscriber is None else subscriber,
                query=present.query if query is None else query,
                namespaces=present.namespaces if namespaces is None else namespaces,
                delivery_target=present.delivery_target if delivery_target is None else delivery_target,
            )
            before = changing.found(writing.connection, [(tenant, id)])
            self._put(writing, rows.row_of(asked), None, before)
            return self._found(writing.connection, (tenant, id))

        return self._database.write(work)

    def remove(self, id: str, *, tenant: str = "") -> bool:
        """Remove a subscription; whether it was there."""

        def work(writing: Writing) -> bool:
            row = changing.found(writing.connection, [(tenant, id)]).get((tenant, id))
            if row is not None:
                changing.remove(writing, row)
            return row is not None

        return self._database.write(work)

    def pause(self, id: str, *, tenant: str = "") -> Subscription:
        """Match no more messages against a subscription, until it is resumed."""
        return self._move(tenant, id, State.PAUSED)

    def resume(self, id: str, *, tenant: str = "") -> Subscription:
        """Match messages against a subscription again."""
        return self._move(tenant, id, State.ACTIVE)

    def get(self, id: str, *, tenant: str = "") -> Subscription:
        """A subscription; `CatalogError` if there is none."""
        return self._database.read(lambda connection: self._found(connection, (tenant, id)))

    def query(self, id: str, revision: int, *, tenant: str = "") -> tuple[str, Mapping[str, str]]:
        """The query of a revision and its prefixes, own or shared; `CatalogError` if it is gone."""

        def work(connection: Connection) -> tuple[str, Mapping[str, str]]:
            row = changing.found(connection, [(tenant, id)]).get((tenant, id))
            if row is None or row["revision"] != revision:
                raise rows.unknown(tenant, id)
            shared = [] if row["prefix_map"] is None else [(tenant, row["prefix_map"])]
            return row["query"], rows.prefixes_of(row, changing.maps_of(connection, shared))

        return self._database.read(work)

    def _put(
        self, writing: Writing, row: rows.Row, state: State | None, present: Mapping[rows.Key, rows.Row]
    ) -> str:
        shared = [] if row["prefix_map"] is None else [(row["tenant"], row["prefix_map"])]
        rows.check(row, changing.maps_of(writing.connection, shared))
        plan = Plan(writing, present)
        outcome = plan.put(row, state)
        plan.carry_out()
        return outcome

    def _move(self, tenant: str, id: str, state: State) -> Subscription:
        def work(writing: Writing) -> Subscription:
            present = self._found(writing.connection, (tenant, id))
            if present.state != state:
                changing.set_state(writing, [present.number], state)
            return self._found(writing.connection, (tenant, id))

        return self._database.write(work)

    def _found(self, connection: Connection, key: rows.Key) -> Subscription:
        by_key = (subscriptions.c.tenant == key[0]) & (subscriptions.c.id == key[1])
        row = connection.execute(select(subscriptions).where(by_key)).mappings().first()
        if row is None:
            raise rows.unknown(*key)
        return rows.subscription_of(row)

    # Many.

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

        `text` occurs in the query, in whatever case. `after` is the tenant and id of the last one
        of the page before.
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
        """Have subscriptions and prefix maps be as given, in batches; how many of them changed.

        Lines that are refused are handed to `refused` and hold up no others. What is there already,
        with the same content, does not change: to import the same again is to do nothing. A
        subscription without an id gets one made of its content.
        """
        return import_lines(self._database, given, refused)

    def export(self, *, tenant: str | None = None) -> Iterator[PrefixMap | Subscription]:
        """The catalog in one state, as `import_` takes it: prefix maps first, then subscriptions."""
        with self._database.reading() as connection:
            yield from self._maps(connection, tenant)
            table = subscriptions.c
            chosen = select(subscriptions).order_by(table.tenant, table.id)
            if tenant is not None:
                chosen = chosen.where(table.tenant == tenant)
            streamed = connection.execution_options(stream_results=True).execute(chosen)
            for row in streamed.yield_per(PAGE).mappings():
                yield rows.subscription_of(row)

    # Prefix maps.

    def put_prefixes(self, given: PrefixMap) -> None:
        """Have a tenant share a prefix map under a name.

        If there was another one, its users get new revisions; if one of their queries would then be
        refused, all stays as it was, with a `CatalogError`.
        """
        self._database.write(lambda writing: changing.put_map(writing, given))

    def prefixes(self, *, tenant: str | None = None) -> Sequence[PrefixMap]:
        """The shared prefix maps, of all tenants or of one."""
        return self._database.read(lambda connection: self._maps(connection, tenant))

    def remove_prefixes(self, name: str, *, tenant: str = "") -> bool:
        """Remove a prefix map; whether it was there. `CatalogError` if it is used."""
        return self._database.write(lambda writing: changing.remove_map(writing, (tenant, name)))

    def _maps(self, connection: Connection, tenant: str | None) -> Sequence[PrefixMap]:
        chosen = select(prefix_maps).order_by(prefix_maps.c.tenant, prefix_maps.c.name)
        if tenant is not None:
            chosen = chosen.where(prefix_maps.c.tenant == tenant)
        return [rows.map_of(row) for row in connection.execute(chosen).mappings()]

    # Following it.

    @property
    def version(self) -> Version:
        """How far the catalog is; every change makes a new one."""
        return self._database.read(identity_and_version)[1]

    @contextmanager
    def changes(self, since: Version | None) -> Iterator[Changes]:
        """What changed since a version: to be read while the context lasts.

        From nothing, all active subscriptions are additions. So it is too for a version that the
        log no longer reaches back to, or that is none of this catalog, as it may be after a backup
        was restored: then `Changes.since` is None.
        """
        with self._database.reading() as connection:
            yield changes_since(connection, since)

    def compact(self, count: int) -> None:
        """Forget how to get from versions before this one to the newest, other than from nothing."""
        self._database.compact(count)
