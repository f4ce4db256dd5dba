"""`/v1/subscriptions`: create, list, change, pause, remove, import and export subscriptions."""

import dataclasses
import tempfile
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tamis.catalog.rows import unknown
from tamis.model import subscription_lines as lines
from tamis.model.subscription import NewSubscription, Refusal, State, Subscription
from tamis.model.webhook import webhook_of
from tamis.service.api.security import Admin, Caller, Subscriber
from tamis.service.api.values import Name, RequestModel, ResponseModel, Target, Text, example
from tamis.service.api.webhooks import check_target, no_target, no_webhook
from tamis.service.errors import ServiceError, WarningDetail
from tamis.service.service import CurrentService, Service
from tamis.settings import Settings

router = APIRouter(prefix="/v1", tags=["subscriptions"])

MAX_REFUSALS = 1_000
"""Refused lines in the response of an import; all are counted."""

MAX_MEMORY = 1 << 20
"""Bytes of an import that are buffered in memory; the rest goes to a temporary file."""

JSON_LINES = "application/x-ndjson"


class SubscriptionRequest(RequestModel):
    """A new subscription."""

    model_config = example(query="//company[@symbol = 'QLT']", id="qlt", namespaces={})

    query: Text
    """An XPath filter, or a transformation `for … where … return …`."""
    subscriber: Name | None = None
    """Whose subscription it is. Required for an admin; for a subscriber's token, its own."""
    id: Name | None = None
    """Unique in the tenant; generated if it is left out."""
    namespaces: dict[Text, Text] | Name = Field(default_factory=dict)
    """Namespace URIs by prefix, or the name of a shared prefix map of the tenant."""
    delivery_target: Target = "outbox"
    """`outbox` (the mailbox), `webhook:NAME`, or the target of a sink."""
    state: State | None = None
    """`active` unless given."""


class SubscriptionChange(RequestModel):
    """Fields to change; the others stay."""

    model_config = example(state="paused")

    query: Text | None = None
    """An XPath filter, or a transformation."""
    subscriber: Name | None = None
    """Whose subscription it is."""
    namespaces: dict[Text, Text] | Name | None = None
    """Namespace URIs by prefix, or the name of a shared prefix map."""
    delivery_target: Target | None = None
    """`outbox`, `webhook:NAME`, or the target of a sink."""
    state: State | None = None
    """`paused` pauses, `active` resumes."""


class EstablishedResponse(ResponseModel):
    """Where a network of brokers knows a subscription."""

    brokers: list[str]
    """Brokers: what enters the network there from now on, and matches, is delivered."""
    missing: list[str]
    """The other brokers: not yet, or they cannot be reached."""


_SUBSCRIPTION = {
    "id": "qlt",
    "revision": 1,
    "subscriber": "ann",
    "query": "//company[@symbol = 'QLT']",
    "namespaces": {},
    "delivery_target": "outbox",
    "state": "active",
    "created": "2026-03-01T12:00:00Z",
    "changed": "2026-03-01T12:00:00Z",
    "warnings": [],
}
_LINE = """{"id": "qlt", "subscriber": "ann", "query": "//company[@symbol = 'QLT']"}\n"""


class SubscriptionResponse(ResponseModel):
    """A subscription."""

    model_config = example(**_SUBSCRIPTION)

    id: str
    """Unique in the tenant."""
    revision: int
    """From 1; grows with each change of the query, the namespaces or the delivery target."""
    subscriber: str
    """Whose subscription it is."""
    query: str
    """The text of the query, as it was given."""
    namespaces: dict[str, str] | str
    """Namespace URIs by prefix, or the name of a shared prefix map."""
    delivery_target: str
    """Where deliveries go."""
    state: State
    """`active` or `paused`."""
    created: datetime
    """When it was created."""
    changed: datetime
    """When it was last changed."""
    warnings: list[WarningDetail] = Field(default_factory=list)
    """Warnings of the query, in the response that adds or changes it."""
    established: EstablishedResponse | None = None
    """In the response for one subscription, in a network of brokers: where it is established."""

    @classmethod
    def of(cls, kept: Subscription) -> "SubscriptionResponse":
        return cls.model_validate(dataclasses.asdict(kept))


class SubscriptionPage(ResponseModel):
    """A page of subscriptions, ordered by id."""

    model_config = example(subscriptions=[_SUBSCRIPTION], next=None)

    subscriptions: list[SubscriptionResponse]
    """The subscriptions of this page."""
    next: str | None
    """The parameter `after` of the next page; null on the last page."""


class RefusedLine(ResponseModel):
    """A line of an import that was refused."""

    line: int
    """The line number, from 1."""
    code: str
    """The code of the error."""
    reason: str
    """What is wrong."""
    column: int | None
    """Where in the query, from 1."""


class WarnedLine(ResponseModel):
    """A warning of the query in a line of an import."""

    line: int
    """The line number, from 1."""
    code: str
    """The code of the warning."""
    reason: str
    """What is probably not intended."""
    column: int
    """Where in the query, from 1."""


class ImportResponse(ResponseModel):
    """The result of an import."""

    model_config = example(
        added=2,
        changed=0,
        unchanged=1,
        refused=1,
        refusals=[{"line": 3, "code": "syntax", "reason": "a name is expected after `[`", "column": 4}],
        warned=0,
        warnings=[],
    )

    added: int
    """New subscriptions."""
    changed: int
    """Subscriptions that got a new revision."""
    unchanged: int
    """Lines that changed nothing."""
    refused: int
    """Lines that were refused."""
    refusals: list[RefusedLine]
    """The first refused lines."""
    warned: int
    """Lines that were accepted with a warning, such as a query that can never match."""
    warnings: list[WarnedLine]
    """The first of these warnings."""


SubscriptionId = Annotated[Name, Path(description="The id of the subscription.")]


@router.post("/subscriptions", status_code=201)
def create(asked: SubscriptionRequest, service: CurrentService, caller: Subscriber) -> SubscriptionResponse:
    """Create a subscription. Idempotent: the same request with the same id changes nothing."""
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
    subscriber: Annotated[Name | None, Query(description="Only subscriptions of this subscriber.")] = None,
    state: Annotated[State | None, Query(description="Only subscriptions in this state.")] = None,
    text: Annotated[Text | None, Query(description="A substring of the query; case-insensitive.")] = None,
    after: Annotated[Name | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The size of the page.")] = 100,
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
def show(id: SubscriptionId, service: CurrentService, caller: Subscriber) -> SubscriptionResponse:
    """One subscription."""
    kept = _own(service, caller, id)
    if service.brokers:
        where = service.catalog.routes.established_of(kept, service.brokers)
        kept = dataclasses.replace(kept, established=where)
    return SubscriptionResponse.of(kept)


@router.patch("/subscriptions/{id:path}")
def change(
    id: SubscriptionId, changed: SubscriptionChange, service: CurrentService, caller: Subscriber
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
def remove(id: SubscriptionId, service: CurrentService, caller: Subscriber) -> Response:
    """Remove a subscription."""
    _own(service, caller, id)
    service.catalog.remove(id, tenant=caller.tenant)
    return Response(status_code=204)


_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON_LINES: {
                "schema": {"type": "string", "description": "One subscription per line."},
                "example": _LINE,
            }
        },
    }
}


@router.post("/subscriptions.jsonl", openapi_extra=_LINES)
async def import_(request: Request, service: CurrentService, caller: Admin) -> ImportResponse:
    """Create or change subscriptions from JSON lines. A refused line does not stop the others."""
    refusals: list[RefusedLine] = []

    def refused(refusal: Refusal) -> None:
        if len(refusals) < MAX_REFUSALS:
            refusals.append(
                RefusedLine(
                    line=refusal.place, code=refusal.code, reason=refusal.reason, column=refusal.column
                )
            )

    with tempfile.SpooledTemporaryFile(MAX_MEMORY) as file:
        async for chunk in request.stream():
            file.write(chunk)
        file.seek(0)
        webhooks = await run_in_threadpool(service.catalog.webhooks.list, caller.tenant)
        names = {one.name for one in webhooks}
        checked = _of_tenant(lines.read(file), caller.tenant, names, service.settings)
        done = await run_in_threadpool(service.catalog.import_, checked, refused)
    counts = {name: getattr(done, name) for name in ("added", "changed", "unchanged", "refused", "warned")}
    warnings = [
        WarnedLine(line=one.place, code=one.code, reason=one.reason, column=one.column)
        for one in done.warnings
    ]
    return ImportResponse(**counts, refusals=refusals, warnings=warnings)


@router.get(
    "/subscriptions.jsonl",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "One subscription or prefix map per line.",
            "content": {JSON_LINES: {"schema": {"type": "string"}, "example": _LINE}},
        }
    },
)
def export(service: CurrentService, caller: Admin) -> StreamingResponse:
    """All subscriptions and prefix maps of the tenant, as JSON lines for an import: a consistent snapshot."""
    items = service.catalog.export(tenant=caller.tenant)
    return StreamingResponse((f"{lines.write(item)}\n" for item in items), media_type=JSON_LINES)


def _of_tenant(
    numbered: Iterable[tuple[int, lines.Line]], tenant: str, webhooks: Collection[str], settings: Settings
) -> Iterator[tuple[int, lines.Line]]:
    """Lines with the tenant set; refused if they name another tenant, or a target that does not exist."""
    for place, line in numbered:
        webhook = webhook_of(line.delivery_target) if isinstance(line, NewSubscription) else None
        if isinstance(line, Refusal):
            yield place, line
        elif line.tenant not in ("", tenant):
            yield place, Refusal(place, "other-tenant", f"the line is of tenant {line.tenant}, not yours")
        elif webhook is not None and webhook not in webhooks:
            missing = no_webhook(webhook)
            yield place, Refusal(place, missing.code, missing.reason)
        elif isinstance(line, NewSubscription) and not settings.has_target(line.delivery_target):
            missing = no_target(line.delivery_target)
            yield place, Refusal(place, missing.code, missing.reason)
        else:
            yield place, dataclasses.replace(line, tenant=tenant)


def _own(service: Service, caller: Caller, id: str) -> Subscription:
    """A subscription of the caller; other subscriptions are reported as unknown."""
    kept = service.catalog.get(id, tenant=caller.tenant)
    if caller.subscriber not in (None, kept.subscriber):
        raise unknown(caller.tenant, id)
    return kept


def _subscriber(named: str | None, caller: Caller) -> str:
    """The subscriber of a new subscription."""
    if caller.subscriber is not None:
        if named not in (None, caller.subscriber):
            raise ServiceError("forbidden", f"this token subscribes for {caller.subscriber} only")
        return caller.subscriber
    if named is None:
        raise ServiceError("bad-request", "subscriber: required with the token of an admin")
    return named
