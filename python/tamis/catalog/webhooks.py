"""Webhooks: create, read, change, remove. Disabling or removing one gives up its queued deliveries."""

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

    def create(self, new: NewWebhook) -> Webhook:
        """Create a webhook. Idempotent: the same values with the same secret change nothing."""
        now = _now()
        row = {
            "tenant": rows.name(new.tenant, "tenant", may_be_empty=True),
            "name": rows.name(new.name, "name of a webhook"),
            "subscriber": None if new.subscriber is None else rows.name(new.subscriber, "subscriber"),
            "url": new.url,
            "secret": new.secret,
        }
        key = new.tenant, new.name

        def work(connection: Connection) -> Webhook:
            initial = {"state": WebhookState.ACTIVE.value, "created": now, "changed": now}
            if _find(connection, key) is None:
                # Another process may create it at the same time.
                with suppress(IntegrityError), connection.begin_nested():
                    connection.execute(insert(webhooks).values(row | initial))
            found = _find(connection, key)
            if found is None or any(found[name] != value for name, value in row.items()):
                reason = f"webhook {new.name} exists with other values; change it, or choose another name"
                raise CatalogError("webhook-exists", reason)
            return _get(connection, key)

        return self._database.write_unversioned(work)

    def get(self, tenant: str, name: str) -> Webhook:
        """A webhook; `CatalogError` if there is none."""
        return self._database.read(lambda connection: _get(connection, (tenant, name)))

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
        """Change the given fields. Disabling gives up its queued deliveries."""
        key = tenant, name
        # An earlier Retry-After no longer applies.
        values: dict[str, Any] = {"changed": _now(), "held_until": None}
        if url is not None:
            values["url"] = url
        if state is WebhookState.ACTIVE:
            values |= {"state": state.value, "reason": None}

        def work(connection: Connection) -> Webhook:
            connection.execute(update(webhooks).where(_is(key)).values(values))
            if state is WebhookState.DISABLED:
                disable(connection, key, "webhook-disabled", "it was disabled by hand")
            return _get(connection, key)

        return self._database.write_unversioned(work)

    def rotate(self, tenant: str, name: str, secret: str, until: datetime) -> Webhook:
        """Sign with a new secret, and until a time also with the previous one."""
        key = tenant, name

        def work(connection: Connection) -> Webhook:
            found = _get(connection, key)
            # A retry must not overwrite the previous secret with the new one.
            if found.secret != secret:
                values = {
                    "secret": secret,
                    "previous": found.secret,
                    "previous_until": rows.microseconds_of(until),
                    "changed": _now(),
                }
                connection.execute(update(webhooks).where(_is(key)).values(values))
            return _get(connection, key)

        return self._database.write_unversioned(work)

    def remove(self, tenant: str, name: str) -> None:
        """Remove a webhook that no subscription uses; gives up its queued deliveries."""
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
            give_up(connection, _waits_for(key), "webhook-removed", f"{target_of(name)} was removed")

        self._database.write_unversioned(work)


def disable(connection: Connection, key: Key, code: str, reason: str) -> None:
    """Disable a webhook; its queued deliveries become dead letters with this code."""
    now = _now()
    values = {"state": WebhookState.DISABLED.value, "reason": reason, "changed": now}
    active = webhooks.c.state == WebhookState.ACTIVE.value
    connection.execute(update(webhooks).where(_is(key), active).values(values))
    give_up(connection, _waits_for(key), code, f"{target_of(key[1])} is disabled: {reason}")


def give_up(
    connection: Connection, which: ColumnElement[bool], code: str, reason: str, tries: int | None = None
) -> None:
    """Give up queued deliveries; `tries`: the attempts so far, if not recorded yet."""
    values: dict[str, Any] = {"state": "dying", "due": None, "code": code, "reason": reason}
    if tries is not None:
        values["tries"] = tries
    connection.execute(update(outgoing).where(which, outgoing.c.due.is_not(None)).values(values))


def webhook_from(row: RowMapping) -> Webhook:
    """The webhook of a row."""
    values = {name: row[name] for name in Webhook.__dataclass_fields__}
    times = {name: None if row[name] is None else rows.time_of(row[name]) for name in _TIMES}
    return Webhook(**{**values, **times, "state": WebhookState(row["state"])})


def unknown_webhook(name: str) -> CatalogError:
    """The error for a webhook that does not exist."""
    return CatalogError("unknown-webhook", f"there is no webhook {name}; GET /v1/webhooks lists them")


def _find(connection: Connection, key: Key) -> RowMapping | None:
    return connection.execute(select(webhooks).where(_is(key))).mappings().first()


def _get(connection: Connection, key: Key) -> Webhook:
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
