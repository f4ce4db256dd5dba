"""The columns that mailbox deliveries and webhook deliveries share."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from tamis.catalog import rows


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """A delivery in the catalog."""

    id: str
    tenant: str
    subscriber: str
    message: str
    source: str
    subscription: str
    revision: int
    generation: int
    received: datetime
    matched: datetime
    encoding: str | None
    headers: str | None
    """The headers of the message, as they are stored."""
    payload: bytes


COLUMNS = tuple(StoredDelivery.__dataclass_fields__)
_TIMES = ("received", "matched")


def to_row(delivery: Mapping[str, Any]) -> dict[str, Any]:
    """The table row of a delivery from the outbox (`DELIVERY`)."""
    # Outboxes of earlier versions have no headers.
    row = {"headers": None, **delivery}
    row = {name: row[name] for name in COLUMNS}
    return row | {name: rows.microseconds_of(row[name]) for name in _TIMES}


def values_of(row: RowMapping) -> dict[str, Any]:
    """The fields of a delivery, from a table row."""
    return {**row, **{name: rows.time_of(row[name]) for name in _TIMES}}
