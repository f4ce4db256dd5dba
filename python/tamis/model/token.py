"""Access tokens and their roles."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """The operations that a token allows, always within its tenant."""

    ADMIN = "admin"
    PUBLISHER = "publisher"
    SUBSCRIBER = "subscriber"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to create."""

    name: str
    """A label for people."""
    role: Role
    tenant: str = ""
    subscriber: str | None = None
    """The subscriber whose mailbox it opens; only for the role subscriber."""
    rate: int | None = None
    """Requests a second; None: the default of the settings."""
    body: int | None = None
    """Bytes of one request; None: the default of the settings."""


@dataclass(frozen=True, slots=True)
class Token(NewToken):
    """A token in the catalog, without its secret."""

    id: str = ""
    created: datetime = datetime.min
    revoked: datetime | None = None
