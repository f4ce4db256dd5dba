"""`/v1/deliveries`: the mailbox of a subscriber, by polling or as server-sent events; acknowledging."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tamis.catalog import Delivery
from tamis.model.headers import unpack_headers
from tamis.service.api.security import Caller, Subscriber, find_token, secret_of
from tamis.service.api.values import MAX_INTEGER, Name, RequestModel, ResponseModel, example
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service
from tamis.sinks.payloads import text_of

router = APIRouter(prefix="/v1", tags=["deliveries"])

HEARTBEAT = 15.0
"""Seconds between two heartbeats of an idle stream, when its token is checked again."""

PAGE = 100
"""Deliveries that a stream reads at a time."""

CHUNK = 1 << 16
"""About how many characters of events are sent together."""

Cursor = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


_DELIVERY = {
    "cursor": 17,
    "id": "9c1fae21b0d74a1e8b7d9f3c5a62e481",
    "subscription": "qlt",
    "revision": 1,
    "message": "m1",
    "source": "inbox",
    "generation": 3,
    "received": "2026-03-01T12:00:00.100000Z",
    "matched": "2026-03-01T12:00:00.600000Z",
    "payload": "<story><company symbol='QLT'/></story>",
    "base64": None,
}


_EVENT = f"id: 17\nevent: delivery\ndata: {json.dumps(_DELIVERY)}\n\n"


class DeliveryResponse(ResponseModel):
    """A message for a subscription, in the form that its query asks for."""

    model_config = example(**_DELIVERY)

    cursor: int
    """The position in the mailbox: poll after it, or acknowledge up to it."""
    id: str
    """The id of the delivery; the same if it is sent again."""
    subscription: str
    """The id of the subscription."""
    revision: int
    """The revision of the subscription."""
    message: str
    """The id of the message."""
    source: str
    """The source of the message."""
    generation: int
    """The generation that the message was matched against."""
    received: datetime
    """When the message was received."""
    matched: datetime
    """When the message was matched."""
    headers: dict[str, str] | None = None
    """The headers of the message, if it has any."""
    payload: str | None = None
    """The message, or the output of the transformation, as text."""
    base64: str | None = None
    """The bytes in base64, instead of `payload`, if they are not UTF-8."""

    @classmethod
    def of(cls, delivery: Delivery) -> "DeliveryResponse":
        names = cls.model_fields.keys() - {"cursor", "headers", "payload", "base64"}
        # Without validation: the catalog has valid values.
        response = cls.model_construct(
            cursor=delivery.number, **{name: getattr(delivery, name) for name in names}
        )
        response.headers = unpack_headers(delivery.headers) or None
        response.payload = text_of(delivery.payload, delivery.encoding)
        if response.payload is None:
            response.base64 = base64.b64encode(delivery.payload).decode()
        return response


class DeliveryPage(ResponseModel):
    """A page of deliveries, the oldest first."""

    model_config = example(deliveries=[_DELIVERY], next=17)

    deliveries: list[DeliveryResponse]
    """Deliveries that are not acknowledged."""
    next: int
    """The parameter `after` of the next request."""


class AcknowledgeRequest(RequestModel):
    """What has arrived: deliveries by id, or all up to a cursor, or both."""

    model_config = example(until=17)

    ids: list[Name] = Field(default_factory=list, max_length=10_000)
    """Ids of deliveries."""
    until: Cursor | None = None
    """A cursor: it and all before it are acknowledged."""
    subscriber: Name | None = None
    """Whose mailbox; required for an admin."""


class AcknowledgeResponse(ResponseModel):
    """The result of an acknowledgement."""

    model_config = example(acknowledged=1)

    acknowledged: int
    """Deliveries that are now acknowledged and were not before."""


@router.get("/deliveries")
def poll(
    service: CurrentService,
    caller: Subscriber,
    subscriber: Annotated[Name | None, Query(description="Whose mailbox; required for an admin.")] = None,
    after: Annotated[Cursor, Query(description="`next` of the previous page.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="The size of the page.")] = 100,
) -> DeliveryPage:
    """Poll: deliveries that are not acknowledged, the oldest first."""
    whose = _whose(subscriber, caller)
    found = service.catalog.mailbox.pending(caller.tenant, whose, after=after, limit=limit)
    shown = [DeliveryResponse.of(one) for one in found]
    return DeliveryPage(deliveries=shown, next=shown[-1].cursor if shown else after)


@router.post("/deliveries/ack")
def acknowledge(
    given: AcknowledgeRequest, service: CurrentService, caller: Subscriber
) -> AcknowledgeResponse:
    """Acknowledge deliveries: they are not sent again."""
    whose = _whose(given.subscriber, caller)
    count = service.catalog.mailbox.acknowledge(caller.tenant, whose, ids=given.ids, until=given.until)
    return AcknowledgeResponse(acknowledged=count)


@router.get(
    "/deliveries/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A stream of events: the cursor as `id`, and a delivery as `data`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EVENT}},
        }
    },
)
async def events(
    request: Request,
    service: CurrentService,
    caller: Subscriber,
    subscriber: Annotated[Name | None, Query(description="Whose mailbox; required for an admin.")] = None,
    after: Annotated[Cursor, Query(description="A cursor to start after; `Last-Event-ID` overrides it.")] = 0,
    last_event_id: Annotated[str | None, Header(description="The id of the last received event.")] = None,
) -> StreamingResponse:
    """Deliveries as server-sent events. After a disconnect a client resumes with `Last-Event-ID`."""
    whose = _whose(subscriber, caller)
    if last_event_id is not None:
        if not (last_event_id.isascii() and last_event_id.isdecimal() and int(last_event_id) <= MAX_INTEGER):
            raise ServiceError("bad-request", "Last-Event-ID: must be a number")
        after = int(last_event_id)
    stream = _events(service, caller, secret_of(request), whose, after)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _events(
    service: Service, caller: Caller, secret: str, subscriber: str, after: int
) -> AsyncIterator[str]:
    """The stream ends when the service stops or the token is revoked."""
    mailbox = service.catalog.mailbox
    yield ": here\n\n"
    while not service.stopping:
        event = service.notifier.event_for((caller.tenant, subscriber))
        found = await run_in_threadpool(mailbox.pending, caller.tenant, subscriber, after=after, limit=PAGE)
        for chunk in _chunks(found):
            yield chunk
        if found:
            after = found[-1].number
        if not found:
            try:
                await asyncio.wait_for(event.wait(), HEARTBEAT)
            except TimeoutError:
                if await find_token(service, secret) is None:
                    return
                yield ": still here\n\n"


def _chunks(found: Iterable[Delivery]) -> Iterator[str]:
    """Deliveries as events, several in a chunk: each send of the server has a cost."""
    events: list[str] = []
    size = 0
    for one in found:
        data = DeliveryResponse.of(one).model_dump_json(exclude_none=True)
        events.append(f"id: {one.number}\nevent: delivery\ndata: {data}\n\n")
        size += len(data)
        if size >= CHUNK:
            yield "".join(events)
            events, size = [], 0
    if events:
        yield "".join(events)


def _whose(named: str | None, caller: Caller) -> str:
    """The subscriber of the mailbox."""
    if caller.subscriber is not None:
        if named not in (None, caller.subscriber):
            raise ServiceError("forbidden", f"this token opens the mailbox of {caller.subscriber} only")
        return caller.subscriber
    if named is None:
        raise ServiceError("bad-request", "subscriber: required with the token of an admin")
    return named
