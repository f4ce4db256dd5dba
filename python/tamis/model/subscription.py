"""Subscriptions, prefix maps, and the results of an import."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tamis.model.matching import QueryWarning

Namespaces = Mapping[str, str] | str
"""A prefix map, or the name of a shared one."""


class State(StrEnum):
    """Whether messages are matched against a subscription."""

    ACTIVE = "active"
    PAUSED = "paused"


DEFAULT_TARGET = "outbox"
"""The delivery target of a subscription that names none."""


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription to add."""

    subscriber: str
    query: str
    id: str | None = None
    """Unique in the tenant; None: the catalog generates one."""
    tenant: str = ""
    namespaces: Namespaces = field(default_factory=dict)
    delivery_target: str = DEFAULT_TARGET
    """Where deliveries go. Only sinks interpret it."""
    state: State | None = None
    """None: unchanged, or active for a new subscription."""


@dataclass(frozen=True, slots=True)
class Established:
    """Where a network of brokers knows a subscription."""

    brokers: tuple[str, ...]
    """What enters the network here from now on, and matches, is delivered."""
    missing: tuple[str, ...]
    """The other brokers: not yet, or they cannot be reached."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription in the catalog."""

    id: str
    revision: int
    """Increases with every change of what is delivered, also after a removal."""
    number: int
    """The target in the index; unique for (tenant, id, revision)."""
    tenant: str
    subscriber: str
    query: str
    namespaces: Namespaces
    delivery_target: str
    state: State
    created: datetime
    changed: datetime
    warnings: tuple[QueryWarning, ...] = ()
    """Of its query, where it was just added or changed."""
    established: Established | None = None
    """Only where it was asked for, and only in a network of brokers."""


@dataclass(frozen=True, slots=True)
class PrefixMap:
    """A named prefix map that subscriptions of a tenant share."""

    name: str
    prefixes: Mapping[str, str]
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused line of an import. Other lines are not affected."""

    place: int
    """The line, from 1."""
    code: str
    reason: str
    column: int | None = None
    """In the query if that was refused, else in the line; None: the whole line."""


@dataclass(frozen=True, slots=True)
class LineWarning:
    """A warning of the query in a line of an import."""

    place: int
    """The line, from 1."""
    code: str
    reason: str
    column: int
    """In the query, from 1."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The counts of an import, by outcome."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0
    warned: int = 0
    """Lines that were accepted with a warning, such as a query that can never match."""
    warnings: tuple[LineWarning, ...] = ()
    """The first of these warnings."""
