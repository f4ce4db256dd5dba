"""A delivery as the catalog keeps it, wherever it goes from there."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from tamis.catalog import rows


@dataclass(frozen=True, slots=True)
class Delivered:
    """What deliveries in mailboxes and those on their way to webhooks have in common."""

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
    payload: bytes


COLUMNS = tuple(Delivered.__dataclass_fields__)
_TIMES = ("received", "matched")


def to_row(delivery: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `DELIVERY` as it stands in a table."""
    row = {name: delivery[name] for name in COLUMNS}
    return row | {name: rows.microseconds_of(row[name]) for name in _TIMES}


def values_of(row: RowMapping) -> dict[str, Any]:
    """What a delivery is made of, from a table's row."""
    return {**row, **{name: rows.time_of(row[name]) for name in _TIMES}}
