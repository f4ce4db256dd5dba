"""Subscriptions as values: what is asked for, what the catalog holds, and what it refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

Namespaces = Mapping[str, str] | str
"""A prefix map of the subscription's own, or the name of one that its tenant shares."""


class State(StrEnum):
    """Whether messages are matched against a subscription."""

    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription as somebody asks for it."""

    subscriber: str
    query: str
    id: str | None = None
    """Unique in the tenant; made up by the catalog if there is none."""
    tenant: str = ""
    namespaces: Namespaces = field(default_factory=dict)
    delivery_target: str = "outbox"
    """Where deliveries go; only the sinks read it."""
    state: State | None = None
    """None leaves it as it is; a new one is active."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as the catalog holds it."""

    id: str
    revision: int
    """Grows whenever what would be delivered changes; also when an id is removed and comes again."""
    number: int
    """Stands for (tenant, id, revision) in the index, as a target; no number is used twice."""
    tenant: str
    subscriber: str
    query: str
    namespaces: Namespaces
    delivery_target: str
    state: State
    created: datetime
    changed: datetime


@dataclass(frozen=True, slots=True)
class PrefixMap:
    """Prefixes under a name, for all subscriptions of a tenant that refer to it."""

    name: str
    prefixes: Mapping[str, str]
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of an import that did not go in; the others did."""

    place: int
    """The line, from 1."""
    code: str
    reason: str
    column: int | None = None
    """In the query if that was refused, else in the line; None if it is about the whole line."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the lines of an import: how many of each."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0
