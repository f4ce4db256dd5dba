"""Who may do what: tokens as values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a token is good for, always in its own tenant."""

    ADMIN = "admin"
    PUBLISHER = "publisher"
    SUBSCRIBER = "subscriber"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token as somebody asks for it."""

    name: str
    """For people: whose it is, or what for."""
    role: Role
    tenant: str = ""
    subscriber: str | None = None
    """Whose mailbox it opens; a subscriber's token has one, no other has."""
    rate: int | None = None
    """Requests a second; None: as the settings say."""
    body: int | None = None
    """Bytes of one request; None: as the settings say."""


@dataclass(frozen=True, slots=True)
class Token(NewToken):
    """A token as the catalog holds it: its secret is not among it."""

    id: str = ""
    created: datetime = datetime.min
    revoked: datetime | None = None
