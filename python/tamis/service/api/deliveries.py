"""`/v1/deliveries`: a subscriber's mailbox, by polling or as server-sent events, and acknowledged."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from tamis.catalog import Delivery
from tamis.service.api.security import Caller, Subscriber, secret_of
from tamis.service.api.values import MAX_INTEGER, Name, RequestModel
from tamis.service.errors import ServiceError
from tamis.service.payloads import text_of
from tamis.service.service import CurrentService, Service

router = APIRouter(prefix="/v1", tags=["deliveries"])

HEARTBEAT = 15.0
"""Seconds after which a stream says that it is still there."""

EVENTS = 100
"""So many deliveries are read at a time for a stream."""

CHUNK = 1 << 16
"""About so many characters of events are sent together."""

Cursor = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class DeliveryResponse(BaseModel):
    """A message, in the form that a subscription asks for."""

    cursor: int
    """Where it stands in the mailbox: to go on from, and to acknowledge up to."""
    id: str
    """Stays the same if it is sent again."""
    subscription: str
    revision: int
    message: str
    source: str
    generation: int
    received: datetime
    matched: datetime
    payload: str | None = None
    base64: str | None = None
    """The bytes, where they are not text that can be told."""

    @classmethod
    def of(cls, delivery: Delivery) -> "DeliveryResponse":
        names = cls.model_fields.keys() - {"cursor", "payload", "base64"}
        # Not checked again: it comes from the catalog.
        shown = cls.model_construct(
            cursor=delivery.number, **{name: getattr(delivery, name) for name in names}
        )
        shown.payload = text_of(delivery.payload, delivery.encoding)
        if shown.payload is None:
            shown.base64 = base64.b64encode(delivery.payload).decode()
        return shown


class DeliveryPage(BaseModel):
    """Some of the deliveries that wait; `next` is the `after` of the next request."""

    deliveries: list[DeliveryResponse]
    next: int


class AcknowledgeRequest(RequestModel):
    """What has arrived: deliveries by id, or all up to a cursor."""

    ids: list[Name] = Field(default_factory=list, max_length=10_000)
    until: Cursor | None = None
    subscriber: Name | None = None


class AcknowledgeResponse(BaseModel):
    """How many deliveries wait no more because of it."""

    acknowledged: int


@router.get("/deliveries")
def poll(
    service: CurrentService,
    caller: Subscriber,
    subscriber: Annotated[Name | None, Query(description="An admin says whose.")] = None,
    after: Annotated[Cursor, Query(description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DeliveryPage:
    """Deliveries that were not acknowledged, the oldest first."""
    whose = _whose(subscriber, caller)
    found = service.catalog.mailbox.pending(caller.tenant, whose, after=after, limit=limit)
    shown = [DeliveryResponse.of(one) for one in found]
    return DeliveryPage(deliveries=shown, next=shown[-1].cursor if shown else after)


@router.post("/deliveries/ack")
def acknowledge(
    given: AcknowledgeRequest, service: CurrentService, caller: Subscriber
) -> AcknowledgeResponse:
    """Say what has arrived: it is not sent again."""
    whose = _whose(given.subscriber, caller)
    count = service.catalog.mailbox.acknowledge(caller.tenant, whose, ids=given.ids, until=given.until)
    return AcknowledgeResponse(acknowledged=count)


@router.get(
    "/deliveries/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def events(
    request: Request,
    service: CurrentService,
    caller: Subscriber,
    subscriber: Annotated[Name | None, Query(description="An admin says whose.")] = None,
    after: Annotated[Cursor, Query(description="Where to begin, unless `Last-Event-ID` says it.")] = 0,
    last_event_id: Annotated[str | None, Header(description="The last event that arrived.")] = None,
) -> StreamingResponse:
    """Deliveries as server-sent events, as they come; after a break a client goes on where it was."""
    whose = _whose(subscriber, caller)
    if last_event_id is not None:
        if not (last_event_id.isascii() and last_event_id.isdecimal() and int(last_event_id) <= MAX_INTEGER):
            raise ServiceError("bad-request", "Last-Event-ID: the id of an event is a number")
        after = int(last_event_id)
    stream = _events(service, caller, secret_of(request), whose, after)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _events(
    service: Service, caller: Caller, secret: str, subscriber: str, after: int
) -> AsyncIterator[str]:
    """Ends when the service does, or when the token is revoked; clients then come again, or are refused."""
    mailbox = service.catalog.mailbox
    yield ": here\n\n"
    while not service.stopping:
        ticket = service.notifier.event_for((caller.tenant, subscriber))
        found = await run_in_threadpool(mailbox.pending, caller.tenant, subscriber, after=after, limit=EVENTS)
        for chunk in _chunks(found):
            yield chunk
        if found:
            after = found[-1].number
        if not found:
            try:
                await asyncio.wait_for(ticket.wait(), HEARTBEAT)
            except TimeoutError:
                if await run_in_threadpool(service.catalog.tokens.find, secret) is None:
                    return
                yield ": still here\n\n"


def _chunks(found: Iterable[Delivery]) -> Iterator[str]:
    """Deliveries as events, some at a time: what is sent goes a long way through the layers of a server."""
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
    """Whose mailbox is asked for."""
    if caller.subscriber is not None:
        if named not in (None, caller.subscriber):
            raise ServiceError("forbidden", f"this token opens the mailbox of {caller.subscriber} only")
        return caller.subscriber
    if named is None:
        raise ServiceError("bad-request", "subscriber: an admin says whose mailbox it is about")
    return named
