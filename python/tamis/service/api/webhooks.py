"""`/v1/webhooks`: where deliveries with the target `webhook:NAME` are sent to."""

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from tamis.catalog.webhooks import unknown_webhook
from tamis.model.signatures import SignatureError, key_of, new_secret
from tamis.model.webhook import NewWebhook, Webhook, WebhookState, webhook_of
from tamis.service.api.security import Caller, Subscriber
from tamis.service.api.values import Name, RequestModel, Text
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service
from tamis.sinks.webhook import validate_url

router = APIRouter(prefix="/v1", tags=["webhooks"])

OVERLAP = 86_400
"""Seconds that what is sent is signed with the secret before, too."""

LONGEST_OVERLAP = 30 * OVERLAP


def _a_secret(text: str) -> str:
    try:
        key_of(text)
    except SignatureError as error:
        raise ValueError(error.reason) from error
    return text


WebhookName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""Part of paths and of delivery targets."""

Secret = Annotated[str, StringConstraints(max_length=200), AfterValidator(_a_secret)]


class WebhookRequest(RequestModel):
    """A webhook as somebody asks for it."""

    name: WebhookName
    url: Text
    subscriber: Name | None = None
    """An admin may name it; for a subscriber's token it is its own."""
    secret: Secret | None = None
    """One of the asker's own: then to ask twice is to ask once."""


class WebhookChange(RequestModel):
    """What is to change; the rest stays."""

    url: Text | None = None
    state: WebhookState | None = None
    """`active`, after it was disabled; what waits for one that is `disabled` goes to the dead letters."""


class SecretRequest(RequestModel):
    """Another secret."""

    secret: Secret | None = None
    """One of the asker's own: then to ask twice is to ask once."""
    overlap: Annotated[int, Field(ge=0, le=LONGEST_OVERLAP)] = OVERLAP
    """Seconds that what is sent is signed with both secrets."""


class WebhookResponse(BaseModel):
    """A webhook as it is kept, and how it does."""

    name: str
    url: str
    subscriber: str | None
    """Whose it is; None: the tenant's."""
    state: WebhookState
    reason: str | None
    """Why it is disabled."""
    created: datetime
    changed: datetime
    previous_until: datetime | None
    """Until then what is sent is also signed with the secret before."""
    held_until: datetime | None
    """It asked for nothing to be sent before."""
    succeeded: datetime | None
    failed: datetime | None
    failure: str | None
    """When sending last succeeded and failed, and how."""
    waiting: int
    """Deliveries that wait to be sent."""

    @classmethod
    def of(cls, kept: Webhook, waiting: int) -> "WebhookResponse":
        names = cls.model_fields.keys() & Webhook.__dataclass_fields__.keys()
        return cls(**{name: getattr(kept, name) for name in names}, waiting=waiting)


class WebhookWithSecret(WebhookResponse):
    """With its secret, which is not shown again."""

    secret: str


class WebhookList(BaseModel):
    """All of them, by name."""

    webhooks: list[WebhookResponse]


class WebhookTestResponse(BaseModel):
    """What came of a test."""

    delivered: bool
    status: int | None
    """What the webhook answered; None if it did not."""
    failure: str | None
    seconds: float


@router.post("/webhooks", status_code=201)
def create(asked: WebhookRequest, service: CurrentService, caller: Subscriber) -> WebhookWithSecret:
    """A new webhook. Its secret is shown once."""
    if service.outbox_follower is None:
        raise ServiceError("no-mailbox", "webhooks need an outbox without targets: see [[sink]]")
    if caller.subscriber is not None and asked.subscriber not in (None, caller.subscriber):
        raise ServiceError("forbidden", f"this token has webhooks of {caller.subscriber} only")
    wanted = NewWebhook(
        name=asked.name,
        url=validate_url(asked.url, service.sender.addresses),
        secret=asked.secret or new_secret(),
        tenant=caller.tenant,
        subscriber=caller.subscriber or asked.subscriber,
    )
    return _with_secret(service, service.catalog.webhooks.create(wanted))


@router.get("/webhooks")
def list_(service: CurrentService, caller: Subscriber) -> WebhookList:
    """The webhooks of the subscriber, or of the tenant."""
    counts = service.catalog.outgoing.counts(caller.tenant)
    found = service.catalog.webhooks.list(caller.tenant, caller.subscriber)
    return WebhookList(webhooks=[WebhookResponse.of(one, counts.get(one.name, 0)) for one in found])


@router.get("/webhooks/{name}")
def show(name: WebhookName, service: CurrentService, caller: Subscriber) -> WebhookResponse:
    """One webhook."""
    return _shown(service, _own(service, caller, name))


@router.patch("/webhooks/{name}")
def change(
    name: WebhookName, changed: WebhookChange, service: CurrentService, caller: Subscriber
) -> WebhookResponse:
    """Change the address of a webhook, enable it again, or disable it."""
    _own(service, caller, name)
    url = None if changed.url is None else validate_url(changed.url, service.sender.addresses)
    kept = service.catalog.webhooks.change(caller.tenant, name, url=url, state=changed.state)
    return _shown(service, kept)


@router.delete("/webhooks/{name}", status_code=204)
def remove(name: WebhookName, service: CurrentService, caller: Subscriber) -> Response:
    """Remove a webhook that no subscription names; what waits for it goes to the dead letters."""
    _own(service, caller, name)
    service.catalog.webhooks.remove(caller.tenant, name)
    return Response(status_code=204)


@router.post("/webhooks/{name}/rotate")
def rotate(
    name: WebhookName, service: CurrentService, caller: Subscriber, asked: SecretRequest | None = None
) -> WebhookWithSecret:
    """Another secret, shown once. For a while what is sent is signed with the one before too."""
    _own(service, caller, name)
    asked = asked or SecretRequest()
    until = datetime.now(UTC) + timedelta(seconds=asked.overlap)
    kept = service.catalog.webhooks.rotate(caller.tenant, name, asked.secret or new_secret(), until)
    return _with_secret(service, kept)


@router.post("/webhooks/{name}/test")
async def test(name: WebhookName, service: CurrentService, caller: Subscriber) -> WebhookTestResponse:
    """Send a test event, once and at once, also to a webhook that is disabled."""
    webhook = await run_in_threadpool(_own, service, caller, name)
    begin = time.monotonic()
    answer = await service.sender.test(webhook)
    return WebhookTestResponse(
        delivered=answer.is_success,
        status=answer.status,
        failure=None if answer.is_success else answer.description,
        seconds=round(time.monotonic() - begin, 4),
    )


def check_target(service: Service, caller: Caller, target: str | None) -> None:
    """Refuse a delivery target that names a webhook which is not there, or not the caller's."""
    name = None if target is None else webhook_of(target)
    if name is not None:
        own = {one.name for one in service.catalog.webhooks.list(caller.tenant, caller.subscriber)}
        if name not in own:
            raise no_webhook(name)


def no_webhook(name: str) -> ServiceError:
    """What a delivery target names that is not there."""
    return ServiceError(
        "no-webhook", f"delivery_target: there is no webhook {name}; POST /v1/webhooks makes one"
    )


def _shown(service: Service, kept: Webhook) -> WebhookResponse:
    return WebhookResponse.of(kept, service.catalog.outgoing.count(kept.tenant, kept.name))


def _with_secret(service: Service, kept: Webhook) -> WebhookWithSecret:
    return WebhookWithSecret(**_shown(service, kept).model_dump(), secret=kept.secret)


def _own(service: Service, caller: Caller, name: str) -> Webhook:
    """A webhook of the caller's; what is another's is not there."""
    kept = service.catalog.webhooks.get(caller.tenant, name)
    if caller.subscriber not in (None, kept.subscriber):
        raise unknown_webhook(name)
    return kept
