"""Webhooks: made, found, changed, removed. What waits for one that is no more is dead."""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from tamis.catalog import rows
from tamis.catalog.database import Database
from tamis.catalog.schema import outgoing, subscriptions, webhooks
from tamis.errors import CatalogError
from tamis.model.webhook import NewWebhook, Webhook, WebhookState, target_of

Key = tuple[str, str]
"""Tenant and name of a webhook."""

_TIMES = ("previous_until", "created", "changed", "held_until", "succeeded", "failed")


class Webhooks:
    """The webhooks of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, asked: NewWebhook) -> Webhook:
        """A new webhook. To ask for the same again, with its secret, changes nothing."""
        now = _now()
        row = {
            "tenant": rows.name(asked.tenant, "tenant", may_be_empty=True),
            "name": rows.name(asked.name, "name of a webhook"),
            "subscriber": None if asked.subscriber is None else rows.name(asked.subscriber, "subscriber"),
            "url": asked.url,
            "secret": asked.secret,
        }
        key = asked.tenant, asked.name

        def work(connection: Connection) -> Webhook:
            made = {"state": WebhookState.ACTIVE.value, "created": now, "changed": now}
            if _find(connection, key) is None:
                # Somebody else may be about to make it too.
                with suppress(IntegrityError), connection.begin_nested():
                    connection.execute(insert(webhooks).values(row | made))
            found = _find(connection, key)
            if found is None or any(found[name] != value for name, value in row.items()):
                reason = f"there is another webhook {asked.name}; change it, or take another name"
                raise CatalogError("webhook-exists", reason)
            return _found(connection, key)

        return self._database.write_aside(work)

    def get(self, tenant: str, name: str) -> Webhook:
        """A webhook; `CatalogError` if there is none."""
        return self._database.read(lambda connection: _found(connection, (tenant, name)))

    def list(self, tenant: str, subscriber: str | None = None) -> Sequence[Webhook]:
        """The webhooks of a tenant, or of one of its subscribers, by name."""
        chosen = select(webhooks).where(webhooks.c.tenant == tenant).order_by(webhooks.c.name)
        if subscriber is not None:
            chosen = chosen.where(webhooks.c.subscriber == subscriber)
        return self._database.read(
            lambda connection: [webhook_from(row) for row in connection.execute(chosen).mappings()]
        )

    def change(
        self, tenant: str, name: str, *, url: str | None = None, state: WebhookState | None = None
    ) -> Webhook:
        """Change what is given. What waits for one that is disabled is dead."""
        key = tenant, name
        # What was asked of us there, or went wrong, is of the past.
        values: dict[str, Any] = {"changed": _now(), "held_until": None}
        if url is not None:
            values["url"] = url
        if state is WebhookState.ACTIVE:
            values |= {"state": state.value, "reason": None}

        def work(connection: Connection) -> Webhook:
            connection.execute(update(webhooks).where(_is(key)).values(values))
            if state is WebhookState.DISABLED:
                disable(connection, key, "webhook-disabled", "it was disabled by hand")
            return _found(connection, key)

        return self._database.write_aside(work)

    def rotate(self, tenant: str, name: str, secret: str, until: datetime) -> Webhook:
        """Sign with another secret, and until a time with the one before too."""
        key = tenant, name

        def work(connection: Connection) -> Webhook:
            found = _found(connection, key)
            # The other way would be to sign with one secret only, if this is done twice.
            if found.secret != secret:
                values = {
                    "secret": secret,
                    "previous": found.secret,
                    "previous_until": rows.microseconds_of(until),
                    "changed": _now(),
                }
                connection.execute(update(webhooks).where(_is(key)).values(values))
            return _found(connection, key)

        return self._database.write_aside(work)

    def remove(self, tenant: str, name: str) -> None:
        """Remove a webhook that no subscription names; what waits for it is dead."""
        key = tenant, name
        used = select(subscriptions.c.id).where(
            subscriptions.c.tenant == tenant, subscriptions.c.delivery_target == target_of(name)
        )

        def work(connection: Connection) -> None:
            user = connection.execute(used.limit(1)).scalar()
            if user is not None:
                reason = f"the subscription {user} has it as its delivery target; change that first"
                raise CatalogError("webhook-used", reason)
            connection.execute(delete(webhooks).where(_is(key)))
            die(connection, _waits_for(key), "webhook-removed", f"{target_of(name)} was removed")

        self._database.write_aside(work)


def disable(connection: Connection, key: Key, code: str, reason: str) -> None:
    """Send nothing more to a webhook; what waits for it is dead, with this code."""
    now = _now()
    values = {"state": WebhookState.DISABLED.value, "reason": reason, "changed": now}
    active = webhooks.c.state == WebhookState.ACTIVE.value
    connection.execute(update(webhooks).where(_is(key), active).values(values))
    die(connection, _waits_for(key), code, f"{target_of(key[1])} is disabled: {reason}")


def die(
    connection: Connection, which: ColumnElement[bool], code: str, reason: str, tries: int | None = None
) -> None:
    """Give deliveries up that wait; `tries`: how often they were tried, if that was not noted before."""
    values: dict[str, Any] = {"state": "dying", "due": None, "code": code, "reason": reason}
    if tries is not None:
        values["tries"] = tries
    connection.execute(update(outgoing).where(which, outgoing.c.due.is_not(None)).values(values))


def webhook_from(row: RowMapping) -> Webhook:
    """A webhook as it stands in the table."""
    values = {name: row[name] for name in Webhook.__dataclass_fields__}
    times = {name: None if row[name] is None else rows.time_of(row[name]) for name in _TIMES}
    return Webhook(**{**values, **times, "state": WebhookState(row["state"])})


def unknown_webhook(name: str) -> CatalogError:
    """There is no such webhook."""
    return CatalogError(
        "unknown-webhook", f"there is no webhook {name}; GET /v1/webhooks shows those there are"
    )


def _find(connection: Connection, key: Key) -> RowMapping | None:
    return connection.execute(select(webhooks).where(_is(key))).mappings().first()


def _found(connection: Connection, key: Key) -> Webhook:
    row = _find(connection, key)
    if row is None:
        raise unknown_webhook(key[1])
    return webhook_from(row)


def _is(key: Key) -> ColumnElement[bool]:
    tenant, name = key
    return (webhooks.c.tenant == tenant) & (webhooks.c.name == name)


def _waits_for(key: Key) -> ColumnElement[bool]:
    tenant, name = key
    return (outgoing.c.tenant == tenant) & (outgoing.c.webhook == name)


def _now() -> int:
    return time.time_ns() // 1000
