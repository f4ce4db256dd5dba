"""Webhooks as values: where deliveries with the target `webhook:NAME` are sent to."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

PREFIX = "webhook:"
"""How delivery targets begin that name a webhook."""


class WebhookState(StrEnum):
    """Whether deliveries are sent to it."""

    ACTIVE = "active"
    DISABLED = "disabled"
    """What is for it goes to the dead letters."""


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook as somebody asks for it."""

    name: str
    url: str
    secret: str = field(repr=False)
    tenant: str = ""
    subscriber: str | None = None
    """Whose it is; None: the tenant's."""


@dataclass(frozen=True, slots=True)
class Webhook(NewWebhook):
    """A webhook as it is kept."""

    previous: str | None = field(default=None, repr=False)
    """The secret before this one: what is sent is signed with both for a while."""
    previous_until: datetime | None = None
    state: WebhookState = WebhookState.ACTIVE
    reason: str | None = None
    """Why it is disabled."""
    created: datetime = datetime.min
    changed: datetime = datetime.min
    held_until: datetime | None = None
    """It asked for nothing to be sent before."""
    succeeded: datetime | None = None
    failed: datetime | None = None
    failure: str | None = None
    """When sending last succeeded and failed, and how."""

    def secrets(self, now: datetime) -> tuple[str, ...]:
        """Those to sign with, the current one first."""
        if self.previous is not None and self.previous_until is not None and now < self.previous_until:
            return (self.secret, self.previous)
        return (self.secret,)

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self.failed is not None and (self.succeeded is None or self.succeeded < self.failed)


def target_of(name: str) -> str:
    """The delivery target that names a webhook."""
    return PREFIX + name


def webhook_of(target: str) -> str | None:
    """The webhook that a delivery target names, if it names one."""
    return target.removeprefix(PREFIX) if target.startswith(PREFIX) else None
