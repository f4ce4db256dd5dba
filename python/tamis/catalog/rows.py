"""Subscriptions as rows: validated on the way in, made whole on the way out."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping

import tamis.engine as engine
from tamis.catalog.schema import LONGEST_NAME
from tamis.errors import CatalogError
from tamis.model.subscription import NewSubscription, PrefixMap, State, Subscription

Row = dict[str, Any]
"""Columns of `schema.subscriptions`, by name."""

Key = tuple[str, str]
"""Tenant and id, or tenant and name of a map."""

ASKED_FOR = ("subscriber", "query", "prefixes", "prefix_map", "delivery_target")
"""The columns that make a new revision when they change."""

ID_BYTES = 12
"""Of ids that are made up: short enough to read, long enough not to meet another."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(microseconds: int) -> datetime:
    """A time as it stands in tables: microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(time: datetime) -> int:
    """The same, the other way."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def row_of(asked: NewSubscription) -> Row:
    """The columns that a request determines; `CatalogError` if a value cannot be stored."""
    shared = asked.namespaces if isinstance(asked.namespaces, str) else None
    own = {} if isinstance(asked.namespaces, str) else asked.namespaces
    row = {
        "tenant": name(asked.tenant, "tenant", may_be_empty=True),
        "subscriber": name(asked.subscriber, "subscriber"),
        "query": _text(asked.query, "query"),
        "prefixes": prefixes_text(own),
        "prefix_map": None if shared is None else name(shared, "name of a prefix map"),
        "delivery_target": _text(asked.delivery_target, "delivery target"),
    }
    row["id"] = _id_of(row) if asked.id is None else name(asked.id, "id")
    return row


def new_id() -> str:
    """An id for who gave none."""
    return secrets.token_hex(ID_BYTES)


def _id_of(row: Row) -> str:
    """An id made of what is asked for: who asks for the same again gets the same."""
    content = json.dumps(sorted(row.items()))
    return hashlib.blake2b(content.encode(), digest_size=ID_BYTES).hexdigest()


def check(row: Row, maps: Mapping[Key, str]) -> None:
    """`QueryError` if the query is none; `CatalogError` if its prefix map is not there."""
    engine.check(row["query"], prefixes_of(row, maps))


def prefixes_of(row: Row, maps: Mapping[Key, str]) -> dict[str, str]:
    """The prefixes that hold for a row: its own, or those of the map that it names."""
    text = row["prefixes"]
    if row["prefix_map"] is not None:
        shared = maps.get((row["tenant"], row["prefix_map"]))
        if shared is None:
            raise unknown_map(row["tenant"], row["prefix_map"])
        text = shared
    prefixes: dict[str, str] = {} if text == "{}" else json.loads(text)
    return prefixes


def subscription_of(row: RowMapping) -> Subscription:
    """A subscription as it stands in the table."""
    return Subscription(
        id=row["id"],
        revision=row["revision"],
        number=row["number"],
        tenant=row["tenant"],
        subscriber=row["subscriber"],
        query=row["query"],
        namespaces=json.loads(row["prefixes"]) if row["prefix_map"] is None else row["prefix_map"],
        delivery_target=row["delivery_target"],
        state=State(row["state"]),
        created=time_of(row["created"]),
        changed=time_of(row["changed"]),
    )


def map_row_of(given: PrefixMap) -> Row:
    """A prefix map as a row; `CatalogError` if a value cannot be stored."""
    return {
        "tenant": name(given.tenant, "tenant", may_be_empty=True),
        "name": name(given.name, "name of a prefix map"),
        "prefixes": prefixes_text(given.prefixes),
    }


def map_of(row: RowMapping) -> PrefixMap:
    """A prefix map as it stands in the table."""
    return PrefixMap(row["name"], json.loads(row["prefixes"]), row["tenant"])


def prefixes_text(prefixes: Mapping[str, str]) -> str:
    """One text for equal prefix maps."""
    if not prefixes:
        return "{}"
    for prefix, uri in prefixes.items():
        _text(prefix, "prefix")
        _text(uri, "namespace")
    return json.dumps(dict(prefixes), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def name(value: str, what: str, *, may_be_empty: bool = False) -> str:
    """A value that rows are found by."""
    if len(value) > LONGEST_NAME:
        reason = f"the {what} has {len(value)} characters, {LONGEST_NAME} are allowed"
        raise CatalogError("name-limit", reason)
    if not value and not may_be_empty:
        raise CatalogError("bad-value", f"the {what} is empty")
    return _text(value, what)


def _text(value: str, what: str) -> str:
    """What every database can store."""
    if "\0" in value or (not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value)):
        reason = f"the {what} has a character that is none: U+0000, or half of a pair"
        raise CatalogError("bad-value", reason)
    return value


def unknown(tenant: str, id: str) -> CatalogError:
    """There is no such subscription."""
    whose = f" of tenant {tenant}" if tenant else ""
    reason = f"there is no subscription {id}{whose}; `tamis subscriptions list` shows those there are"
    return CatalogError("unknown-subscription", reason)


def unknown_map(tenant: str, name: str) -> CatalogError:
    """There is no such prefix map."""
    whose = f"tenant {tenant} has" if tenant else "there is"
    return CatalogError("unknown-prefix-map", f"{whose} no prefix map {name}; add the map first")
