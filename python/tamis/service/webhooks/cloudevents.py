"""A delivery → a CloudEvent 1.0 in structured JSON: the body of a request to a webhook."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from tamis.catalog.outgoing import Outbound
from tamis.sinks.payloads import text_of

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"

DELIVERY, TEST = "tamis.delivery", "tamis.test"
"""The types of events."""


def delivery_event(delivery: Outbound) -> bytes:
    """The event of a delivery. A retry has the same id."""
    event = _event(delivery.id, f"/sources/{quote(delivery.source, safe='')}", DELIVERY, delivery.received)
    event |= {
        "subject": delivery.message,
        "datacontenttype": "application/xml",
        # Extension attributes must have lower-case names.
        "subscription": delivery.subscription,
        "revision": delivery.revision,
        "subscriber": delivery.subscriber,
        "generation": delivery.generation,
    }
    if delivery.tenant:
        event["tenant"] = delivery.tenant
    if delivery.headers is not None:
        # As text: the value of an extension attribute is not an object.
        event["headers"] = delivery.headers
    text = text_of(delivery.payload, delivery.encoding)
    if text is None:
        event["data_base64"] = base64.b64encode(delivery.payload).decode()
    else:
        event["data"] = text
    return _encoded(event)


def test_event(id: str, webhook: str) -> bytes:
    """An event to test a webhook with."""
    event = _event(id, f"/webhooks/{quote(webhook, safe='')}", TEST, datetime.now(UTC))
    return _encoded(event | {"datacontenttype": "application/xml", "data": "<test/>"})


def _event(id: str, source: str, type: str, time: datetime) -> dict[str, Any]:
    stamp = time.isoformat(timespec="microseconds")
    return {"specversion": "1.0", "id": id, "source": source, "type": type, "time": stamp}


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
