"""`/v1/subscriptions`: what somebody wants, kept, changed, paused, removed, imported and exported."""

import dataclasses
import tempfile
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from tamis.catalog.rows import unknown
from tamis.model import subscription_lines as lines
from tamis.model.subscription import NewSubscription, Refusal, State, Subscription
from tamis.model.webhook import webhook_of
from tamis.service.api.security import Admin, Caller, Subscriber
from tamis.service.api.values import Name, RequestModel, Text
from tamis.service.api.webhooks import check_target, no_webhook
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service

router = APIRouter(prefix="/v1", tags=["subscriptions"])

SHOWN_REFUSALS = 1_000
"""So many refused lines are told, of an import; all are counted."""

IN_MEMORY = 1 << 20
"""An import that is larger waits in a file."""

JSON_LINES = "application/x-ndjson"


class SubscriptionRequest(RequestModel):
    """A subscription as somebody asks for it."""

    query: Text
    subscriber: Name | None = None
    """An admin names it; for a subscriber's token it is its own."""
    id: Name | None = None
    namespaces: dict[Text, Text] | Name = Field(default_factory=dict)
    """A prefix map, or the name of one that the tenant shares."""
    delivery_target: Text = "outbox"
    state: State | None = None


class SubscriptionChange(RequestModel):
    """What is to change; the rest stays."""

    query: Text | None = None
    subscriber: Name | None = None
    namespaces: dict[Text, Text] | Name | None = None
    delivery_target: Text | None = None
    state: State | None = None
    """`paused` and `active`: to pause and to resume."""


class SubscriptionResponse(BaseModel):
    """A subscription as it is kept."""

    id: str
    revision: int
    subscriber: str
    query: str
    namespaces: dict[str, str] | str
    delivery_target: str
    state: State
    created: datetime
    changed: datetime

    @classmethod
    def of(cls, kept: Subscription) -> "SubscriptionResponse":
        return cls(**{name: getattr(kept, name) for name in cls.model_fields})


class SubscriptionPage(BaseModel):
    """Some of them; `next` is the `after` of the next page, if there is one."""

    subscriptions: list[SubscriptionResponse]
    next: str | None


class RefusedLine(BaseModel):
    """A line of an import that did not go in."""

    line: int
    code: str
    reason: str
    column: int | None


class ImportResponse(BaseModel):
    """How many lines were what."""

    added: int
    changed: int
    unchanged: int
    refused: int
    refusals: list[RefusedLine]


@router.post("/subscriptions", status_code=201)
def create(asked: SubscriptionRequest, service: CurrentService, caller: Subscriber) -> SubscriptionResponse:
    """Subscribe. To ask for the same again, with its id, changes nothing."""
    check_target(service, caller, asked.delivery_target)
    wanted = NewSubscription(
        subscriber=_subscriber(asked.subscriber, caller),
        query=asked.query,
        id=asked.id,
        tenant=caller.tenant,
        namespaces=asked.namespaces,
        delivery_target=asked.delivery_target,
        state=asked.state,
    )
    return SubscriptionResponse.of(service.catalog.add(wanted))


@router.get("/subscriptions")
def list_(
    service: CurrentService,
    caller: Subscriber,
    subscriber: Name | None = None,
    state: State | None = None,
    text: Annotated[Text | None, Query(description="What occurs in the query, in whatever case.")] = None,
    after: Annotated[Name | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SubscriptionPage:
    """Subscriptions by id, a page at a time."""
    found = service.catalog.list(
        tenant=caller.tenant,
        subscriber=caller.subscriber or subscriber,
        state=state,
        text=text,
        after=None if after is None else (caller.tenant, after),
        limit=limit + 1,
    )
    page = found[:limit]
    more = page[-1].id if len(found) > limit else None
    return SubscriptionPage(subscriptions=[SubscriptionResponse.of(one) for one in page], next=more)


@router.get("/subscriptions/{id:path}")
def show(id: Name, service: CurrentService, caller: Subscriber) -> SubscriptionResponse:
    """One subscription."""
    return SubscriptionResponse.of(_own(service, caller, id))


@router.patch("/subscriptions/{id:path}")
def change(
    id: Name, changed: SubscriptionChange, service: CurrentService, caller: Subscriber
) -> SubscriptionResponse:
    """Change, pause or resume a subscription. It gets a new revision if what would be delivered changes."""
    _own(service, caller, id)
    if changed.subscriber is not None:
        _subscriber(changed.subscriber, caller)
    check_target(service, caller, changed.delivery_target)
    catalog = service.catalog
    kept = catalog.change(
        id,
        tenant=caller.tenant,
        subscriber=changed.subscriber,
        query=changed.query,
        namespaces=changed.namespaces,
        delivery_target=changed.delivery_target,
    )
    if changed.state is State.PAUSED:
        kept = catalog.pause(id, tenant=caller.tenant)
    elif changed.state is State.ACTIVE:
        kept = catalog.resume(id, tenant=caller.tenant)
    return SubscriptionResponse.of(kept)


@router.delete("/subscriptions/{id:path}", status_code=204)
def remove(id: Name, service: CurrentService, caller: Subscriber) -> Response:
    """Remove a subscription."""
    _own(service, caller, id)
    service.catalog.remove(id, tenant=caller.tenant)
    return Response(status_code=204)


_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {JSON_LINES: {"schema": {"type": "string", "description": "A subscription a line."}}},
    }
}


@router.post("/subscriptions.jsonl", openapi_extra=_LINES)
async def import_(request: Request, service: CurrentService, caller: Admin) -> ImportResponse:
    """Have subscriptions be as the lines say. Lines that are refused hold up no others."""
    refusals: list[RefusedLine] = []

    def refused(refusal: Refusal) -> None:
        if len(refusals) < SHOWN_REFUSALS:
            told = RefusedLine(
                line=refusal.place, code=refusal.code, reason=refusal.reason, column=refusal.column
            )
            refusals.append(told)

    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        async for chunk in request.stream():
            file.write(chunk)
        file.seek(0)
        webhooks = await run_in_threadpool(service.catalog.webhooks.list, caller.tenant)
        given = _of_tenant(lines.read(file), caller.tenant, {one.name for one in webhooks})
        done = await run_in_threadpool(service.catalog.import_, given, refused)
    return ImportResponse(**dataclasses.asdict(done), refusals=refusals)


@router.get(
    "/subscriptions.jsonl",
    response_class=StreamingResponse,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}},
)
def export(service: CurrentService, caller: Admin) -> StreamingResponse:
    """All subscriptions and prefix maps of the tenant, in one state, as an import takes them."""
    items = service.catalog.export(tenant=caller.tenant)
    return StreamingResponse((f"{lines.write(item)}\n" for item in items), media_type=JSON_LINES)


def _of_tenant(
    given: Iterable[tuple[int, lines.Line]], tenant: str, webhooks: Collection[str]
) -> Iterator[tuple[int, lines.Line]]:
    """Lines as those of a tenant; refused if they speak of another, or of a webhook that is not there."""
    for place, line in given:
        webhook = webhook_of(line.delivery_target) if isinstance(line, NewSubscription) else None
        if isinstance(line, Refusal):
            yield place, line
        elif line.tenant not in ("", tenant):
            yield place, Refusal(place, "other-tenant", f"the line is of tenant {line.tenant}, not yours")
        elif webhook is not None and webhook not in webhooks:
            missing = no_webhook(webhook)
            yield place, Refusal(place, missing.code, missing.reason)
        else:
            yield place, dataclasses.replace(line, tenant=tenant)


def _own(service: Service, caller: Caller, id: str) -> Subscription:
    """A subscription of the caller's; what is another's is not there."""
    kept = service.catalog.get(id, tenant=caller.tenant)
    if caller.subscriber not in (None, kept.subscriber):
        raise unknown(caller.tenant, id)
    return kept


def _subscriber(named: str | None, caller: Caller) -> str:
    """Whose a subscription is to be."""
    if caller.subscriber is not None:
        if named not in (None, caller.subscriber):
            raise ServiceError("forbidden", f"this token subscribes for {caller.subscriber} only")
        return caller.subscriber
    if named is None:
        raise ServiceError("bad-request", "subscriber: an admin says whose subscription it is")
    return named
