"""Subscriptions and prefix maps as rows: validated when written, decoded when read."""

import hashlib
import json
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping

import tamis.engine as engine
from tamis.catalog.schema import LONGEST_NAME
from tamis.errors import CatalogError
from tamis.model.matching import Query
from tamis.model.message_id import CONTROL
from tamis.model.subscription import NewSubscription, PrefixMap, State, Subscription

CONTROL_CHARACTER = re.compile(CONTROL)

Row = dict[str, Any]
"""Columns of `schema.subscriptions`, by name."""

Key = tuple[str, str]
"""Tenant and id, or tenant and name of a map."""

REVISION_COLUMNS = ("subscriber", "query", "prefixes", "prefix_map", "delivery_target")
"""The columns that make a new revision when they change."""

ID_BYTES = 12
"""Length of generated ids: short enough to read, long enough to be unique."""

KEYS = 5_000
"""Keys per statement; SQLite allows 32,766 parameters."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def chunks(keys: Collection[str]) -> Iterator[list[str]]:
    """Keys in lists that fit one statement."""
    all_keys = list(keys)
    for start in range(0, len(all_keys), KEYS):
        yield all_keys[start : start + KEYS]


def time_of(microseconds: int) -> datetime:
    """The time of a column, which holds microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(time: datetime) -> int:
    """The column value of a time."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def row_of(new: NewSubscription) -> Row:
    """The columns that a subscription sets; `CatalogError` if a value cannot be stored."""
    shared = new.namespaces if isinstance(new.namespaces, str) else None
    own = {} if isinstance(new.namespaces, str) else new.namespaces
    row = {
        "tenant": name(new.tenant, "tenant", may_be_empty=True),
        "subscriber": name(new.subscriber, "subscriber"),
        "query": _text(new.query, "query"),
        "prefixes": prefixes_text(own),
        "prefix_map": None if shared is None else name(shared, "name of a prefix map"),
        "delivery_target": _one_line(new.delivery_target, "delivery target"),
    }
    row["id"] = _id_of(row) if new.id is None else name(new.id, "id")
    return row


def new_id() -> str:
    """A random id."""
    return secrets.token_hex(ID_BYTES)


def _id_of(row: Row) -> str:
    """A hash of the content as id: importing the same subscription again gives the same id."""
    content = json.dumps(sorted(row.items()))
    return hashlib.blake2b(content.encode(), digest_size=ID_BYTES).hexdigest()


def check(row: Row, maps: Mapping[Key, str]) -> Query:
    """`QueryError` if the query is refused; `CatalogError` if its prefix map does not exist."""
    return engine.check(row["query"], prefixes_of(row, maps))


def prefixes_of(row: Row, maps: Mapping[Key, str]) -> dict[str, str]:
    """The prefixes of a row: its own, or those of the prefix map that it names."""
    text = row["prefixes"]
    if row["prefix_map"] is not None:
        shared = maps.get((row["tenant"], row["prefix_map"]))
        if shared is None:
            raise unknown_map(row["tenant"], row["prefix_map"])
        text = shared
    prefixes: dict[str, str] = {} if text == "{}" else json.loads(text)
    return prefixes


def subscription_of(row: RowMapping) -> Subscription:
    """The subscription of a row."""
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


def map_row_of(prefix_map: PrefixMap) -> Row:
    """A prefix map as a row; `CatalogError` if a value cannot be stored."""
    return {
        "tenant": name(prefix_map.tenant, "tenant", may_be_empty=True),
        "name": name(prefix_map.name, "name of a prefix map"),
        "prefixes": prefixes_text(prefix_map.prefixes),
    }


def map_of(row: RowMapping) -> PrefixMap:
    """The prefix map of a row."""
    return PrefixMap(row["name"], json.loads(row["prefixes"]), row["tenant"])


def prefixes_text(prefixes: Mapping[str, str]) -> str:
    """Canonical JSON of a prefix map: equal maps have equal texts."""
    if not prefixes:
        return "{}"
    for prefix, uri in prefixes.items():
        _text(prefix, "prefix")
        _text(uri, "namespace")
    return json.dumps(dict(prefixes), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def name(value: str, what: str, *, may_be_empty: bool = False) -> str:
    """Check a value that rows are looked up by."""
    if len(value) > LONGEST_NAME:
        reason = f"the {what} has {len(value)} characters, {LONGEST_NAME} are allowed"
        raise CatalogError("name-limit", reason)
    if not value and not may_be_empty:
        raise CatalogError("bad-value", f"the {what} is empty")
    return _one_line(value, what)


def _one_line(value: str, what: str) -> str:
    """Check a text that is shown in lists and logs, and is part of URLs."""
    if CONTROL_CHARACTER.search(value):
        raise CatalogError("bad-value", f"the {what} has a control character, such as a line break")
    return _text(value, what)


def _text(value: str, what: str) -> str:
    """Check that every database can store a text."""
    if "\0" in value or (not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value)):
        reason = f"the {what} has an invalid character: U+0000 or a lone surrogate"
        raise CatalogError("bad-value", reason)
    return value


def unknown(tenant: str, id: str) -> CatalogError:
    """The error for a subscription that does not exist."""
    whose = f" of tenant {tenant}" if tenant else ""
    reason = f"there is no subscription {id}{whose}; `tamis subscriptions list` lists them"
    return CatalogError("unknown-subscription", reason)


def unknown_map(tenant: str, name: str) -> CatalogError:
    """The error for a prefix map that does not exist."""
    whose = f"tenant {tenant} has" if tenant else "there is"
    return CatalogError("unknown-prefix-map", f"{whose} no prefix map {name}; add the map first")
