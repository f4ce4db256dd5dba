"""Deliveries for tests of sinks."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tamis.sinks.outbox import DELIVERY

TIME = datetime(2026, 1, 31, 12, 30, 0, 250_000, tzinfo=UTC)


def delivery(
    number: int, subscriber: str = "bob", tenant: str = "", payload: bytes = b"<a/>"
) -> dict[str, Any]:
    """One, by its number."""
    return {
        "id": f"d{number}",
        "message": f"m{number}",
        "source": "inbox",
        "subscription": f"s{number}",
        "revision": 1,
        "subscriber": subscriber,
        "tenant": tenant,
        "delivery_target": "outbox",
        "generation": 7,
        "received": TIME,
        "matched": TIME,
        "encoding": None if number % 2 else "UTF-8",
        "headers": None if number % 2 else '{"b":"é","priority":"high"}',
        "payload": payload,
    }


def deliveries(numbers: Iterable[int]) -> list[dict[str, Any]]:
    """Many, of two tenants with two subscribers each, those of a subscriber together."""
    rows = [delivery(n, f"bob{n % 2}", f"t{n % 4 // 2}", b"<a>%d</a>" % n) for n in numbers]
    return sorted(rows, key=lambda row: (row["tenant"], row["subscriber"]))


def batches(rows: Sequence[dict[str, Any]], size: int = 3) -> list[pa.RecordBatch]:
    """Rows as a task gets them, some at a time."""
    return [
        pa.RecordBatch.from_pylist(list(rows[at : at + size]), schema=DELIVERY)
        for at in range(0, len(rows), size)
    ]
