"""Deliveries as CloudEvents 1.0, in structured JSON: what a webhook is sent."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from tamis.catalog.outgoing import Outbound
from tamis.service.payloads import text_of

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"

DELIVERY, TEST = "tamis.delivery", "tamis.test"
"""The types of events."""


def delivery_event(delivery: Outbound) -> bytes:
    """A message for a subscription. Its id stays the same if it is sent again."""
    event = _event(delivery.id, f"/sources/{quote(delivery.source, safe='')}", DELIVERY, delivery.received)
    event |= {
        "subject": delivery.message,
        "datacontenttype": "application/xml",
        # Extensions have lower-case names.
        "subscription": delivery.subscription,
        "revision": delivery.revision,
        "subscriber": delivery.subscriber,
        "generation": delivery.generation,
    }
    if delivery.tenant:
        event["tenant"] = delivery.tenant
    text = text_of(delivery.payload, delivery.encoding)
    if text is None:
        event["data_base64"] = base64.b64encode(delivery.payload).decode()
    else:
        event["data"] = text
    return _encoded(event)


def test_event(id: str, webhook: str) -> bytes:
    """To see whether a webhook works."""
    event = _event(id, f"/webhooks/{quote(webhook, safe='')}", TEST, datetime.now(UTC))
    return _encoded(event | {"datacontenttype": "application/xml", "data": "<test/>"})


def _event(id: str, source: str, type: str, time: datetime) -> dict[str, Any]:
    stamp = time.isoformat(timespec="microseconds")
    return {"specversion": "1.0", "id": id, "source": source, "type": type, "time": stamp}


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
