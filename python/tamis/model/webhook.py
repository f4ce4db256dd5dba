"""Webhooks: receivers of deliveries with the target `webhook:NAME`."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

PREFIX = "webhook:"
"""Prefix of delivery targets that name a webhook."""


class WebhookState(StrEnum):
    """Whether deliveries are sent to a webhook."""

    ACTIVE = "active"
    DISABLED = "disabled"
    """Its deliveries go to the dead letters."""


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook to create."""

    name: str
    url: str
    secret: str = field(repr=False)
    tenant: str = ""
    subscriber: str | None = None
    """Its owner; None: the tenant."""


@dataclass(frozen=True, slots=True)
class Webhook(NewWebhook):
    """A webhook in the catalog."""

    previous: str | None = field(default=None, repr=False)
    """The previous secret; during a rotation both sign."""
    previous_until: datetime | None = None
    state: WebhookState = WebhookState.ACTIVE
    reason: str | None = None
    """Why it is disabled."""
    created: datetime = datetime.min
    changed: datetime = datetime.min
    held_until: datetime | None = None
    """Send nothing before this time (Retry-After)."""
    succeeded: datetime | None = None
    failed: datetime | None = None
    failure: str | None = None
    """The last success, the last failure, and its reason."""

    def secrets(self, now: datetime) -> tuple[str, ...]:
        """The secrets to sign with, the current one first."""
        if self.previous is not None and self.previous_until is not None and now < self.previous_until:
            return (self.secret, self.previous)
        return (self.secret,)

    @property
    def failing(self) -> bool:
        """Whether the last attempt failed."""
        return self.failed is not None and (self.succeeded is None or self.succeeded < self.failed)


def target_of(name: str) -> str:
    """The delivery target that names a webhook."""
    return PREFIX + name


def webhook_of(target: str) -> str | None:
    """The webhook that a delivery target names, if it names one."""
    return target.removeprefix(PREFIX) if target.startswith(PREFIX) else None
