"""`/v1/webhooks`: URLs that deliveries with the target `webhook:NAME` are sent to."""

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import AfterValidator, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from tamis.catalog.webhooks import unknown_webhook
from tamis.model.signatures import SignatureError, key_of, new_secret
from tamis.model.webhook import NewWebhook, Webhook, WebhookState, webhook_of
from tamis.service.api.security import Caller, Subscriber
from tamis.service.api.values import Name, RequestModel, ResponseModel, Text, example
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service
from tamis.sinks.webhook import validate_url

router = APIRouter(prefix="/v1", tags=["webhooks"])

OVERLAP = 86_400
"""Seconds during which requests are signed with the previous secret too."""

MAX_OVERLAP = 30 * OVERLAP


def _valid_secret(text: str) -> str:
    try:
        key_of(text)
    except SignatureError as error:
        raise ValueError(error.reason) from error
    return text


WebhookName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""Safe in paths and delivery targets."""

Named = Annotated[WebhookName, Path(description="The name of the webhook.")]

Secret = Annotated[str, StringConstraints(max_length=200), AfterValidator(_valid_secret)]


class WebhookRequest(RequestModel):
    """A new webhook."""

    model_config = example(name="news", url="https://example.org/news")

    name: WebhookName
    """Letters, digits, `.`, `_` and `-`; a subscription uses the webhook as `webhook:NAME`."""
    url: Text
    """Where deliveries are sent to."""
    subscriber: Name | None = None
    """Whose webhook it is. An admin may set it; for a subscriber's token, its own."""
    secret: Secret | None = None
    """The signing secret, `whsec_` and base64; generated if left out. With it the request is idempotent."""


class WebhookChange(RequestModel):
    """Fields to change; the others stay."""

    model_config = example(state="active")

    url: Text | None = None
    """Where deliveries are sent to."""
    state: WebhookState | None = None
    """`active` enables it; `disabled` disables it and moves its waiting deliveries to the dead letters."""


class SecretRequest(RequestModel):
    """A new secret."""

    model_config = example(overlap=3600)

    secret: Secret | None = None
    """The signing secret; generated if it is left out. With it the request is idempotent."""
    overlap: Annotated[int, Field(ge=0, le=MAX_OVERLAP)] = OVERLAP
    """Seconds during which requests are signed with both the new and the previous secret."""


_WEBHOOK = {
    "name": "news",
    "url": "https://example.org/news",
    "subscriber": "ann",
    "state": "active",
    "reason": None,
    "created": "2026-03-01T12:00:00Z",
    "changed": "2026-03-01T12:00:00Z",
    "previous_until": None,
    "held_until": None,
    "succeeded": "2026-03-01T12:04:00Z",
    "failed": None,
    "failure": None,
    "waiting": 0,
}


class WebhookResponse(ResponseModel):
    """A webhook and its status."""

    model_config = example(**_WEBHOOK)

    name: str
    """Its name."""
    url: str
    """Where deliveries are sent to."""
    subscriber: str | None
    """Whose webhook it is; null: all subscribers of the tenant may use it."""
    state: WebhookState
    """`active` or `disabled`."""
    reason: str | None
    """Why it is disabled."""
    created: datetime
    """When it was created."""
    changed: datetime
    """When it was last changed."""
    previous_until: datetime | None
    """Until then requests are also signed with the previous secret."""
    held_until: datetime | None
    """The receiver asked, by Retry-After, for no requests before this time."""
    succeeded: datetime | None
    """When a request last succeeded."""
    failed: datetime | None
    """When a request last failed."""
    failure: str | None
    """How the last failed request failed."""
    waiting: int
    """Deliveries that wait to be sent."""

    @classmethod
    def of(cls, kept: Webhook, waiting: int) -> "WebhookResponse":
        names = cls.model_fields.keys() & Webhook.__dataclass_fields__.keys()
        return cls(**{name: getattr(kept, name) for name in names}, waiting=waiting)


class WebhookWithSecret(WebhookResponse):
    """A webhook with its secret, which is shown only in this response."""

    model_config = example(**_WEBHOOK, secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

    secret: str
    """The signing secret, `whsec_` and base64."""


class WebhookList(ResponseModel):
    """Webhooks, ordered by name."""

    model_config = example(webhooks=[_WEBHOOK])

    webhooks: list[WebhookResponse]
    """All webhooks of the subscriber, or of the tenant."""


class WebhookTestResponse(ResponseModel):
    """The result of a test."""

    model_config = example(delivered=True, status=204, failure=None, seconds=0.0421)

    delivered: bool
    """Whether the receiver accepted the event."""
    status: int | None
    """The HTTP status of the receiver; null if it did not answer."""
    failure: str | None
    """What failed."""
    seconds: float
    """How long it took."""


@router.post("/webhooks", status_code=201)
def create(asked: WebhookRequest, service: CurrentService, caller: Subscriber) -> WebhookWithSecret:
    """Create a webhook. Its secret is shown only in this response."""
    if service.outbox_follower is None:
        raise ServiceError("no-mailbox", "webhooks need a [[sink]] of the kind directory without targets")
    if caller.subscriber is not None and asked.subscriber not in (None, caller.subscriber):
        raise ServiceError("forbidden", f"this token has webhooks of {caller.subscriber} only")
    new = NewWebhook(
        name=asked.name,
        url=validate_url(asked.url, service.sender.addresses),
        secret=asked.secret or new_secret(),
        tenant=caller.tenant,
        subscriber=caller.subscriber or asked.subscriber,
    )
    return _with_secret(service, service.catalog.webhooks.create(new))


@router.get("/webhooks")
def list_(service: CurrentService, caller: Subscriber) -> WebhookList:
    """List the webhooks of the subscriber, or of the tenant."""
    counts = service.catalog.outgoing.counts(caller.tenant)
    found = service.catalog.webhooks.list(caller.tenant, caller.subscriber)
    return WebhookList(webhooks=[WebhookResponse.of(one, counts.get(one.name, 0)) for one in found])


@router.get("/webhooks/{name}")
def show(name: Named, service: CurrentService, caller: Subscriber) -> WebhookResponse:
    """One webhook."""
    return _response(service, _own(service, caller, name))


@router.patch("/webhooks/{name}")
def change(
    name: Named, changed: WebhookChange, service: CurrentService, caller: Subscriber
) -> WebhookResponse:
    """Change the URL of a webhook, or enable or disable it."""
    _own(service, caller, name)
    url = None if changed.url is None else validate_url(changed.url, service.sender.addresses)
    kept = service.catalog.webhooks.change(caller.tenant, name, url=url, state=changed.state)
    return _response(service, kept)


@router.delete("/webhooks/{name}", status_code=204)
def remove(name: Named, service: CurrentService, caller: Subscriber) -> Response:
    """Remove a webhook that no subscription uses. Its waiting deliveries go to the dead letters."""
    _own(service, caller, name)
    service.catalog.webhooks.remove(caller.tenant, name)
    return Response(status_code=204)


@router.post("/webhooks/{name}/rotate")
def rotate(
    name: Named, service: CurrentService, caller: Subscriber, asked: SecretRequest | None = None
) -> WebhookWithSecret:
    """Replace the secret; it is shown only in this response. Requests are signed with both for a while."""
    _own(service, caller, name)
    asked = asked or SecretRequest()
    until = datetime.now(UTC) + timedelta(seconds=asked.overlap)
    kept = service.catalog.webhooks.rotate(caller.tenant, name, asked.secret or new_secret(), until)
    return _with_secret(service, kept)


@router.post("/webhooks/{name}/test")
async def test(name: Named, service: CurrentService, caller: Subscriber) -> WebhookTestResponse:
    """Send a test event now, without retries, also to a disabled webhook."""
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
    """Refuse a delivery target without a sink, or of a webhook that does not exist or is not the caller's."""
    name = None if target is None else webhook_of(target)
    if target is not None and not service.settings.has_target(target):
        raise no_target(target)
    if name is not None:
        own = {one.name for one in service.catalog.webhooks.list(caller.tenant, caller.subscriber)}
        if name not in own:
            raise no_webhook(name)


def no_target(target: str) -> ServiceError:
    """The error for a delivery target without a sink."""
    return ServiceError(
        "no-target", f"delivery_target: no sink has the target {target}; GET /v1/sinks lists them"
    )


def no_webhook(name: str) -> ServiceError:
    """The error for a delivery target whose webhook does not exist."""
    return ServiceError(
        "no-webhook", f"delivery_target: there is no webhook {name}; POST /v1/webhooks makes one"
    )


def _response(service: Service, kept: Webhook) -> WebhookResponse:
    return WebhookResponse.of(kept, service.catalog.outgoing.count(kept.tenant, kept.name))


def _with_secret(service: Service, kept: Webhook) -> WebhookWithSecret:
    return WebhookWithSecret(**_response(service, kept).model_dump(), secret=kept.secret)


def _own(service: Service, caller: Caller, name: str) -> Webhook:
    """A webhook of the caller; other webhooks are reported as unknown."""
    kept = service.catalog.webhooks.get(caller.tenant, name)
    if caller.subscriber not in (None, kept.subscriber):
        raise unknown_webhook(name)
    return kept
