"""The envelope of a message as queries see it: what `$envelope` has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tamis.model.headers import pack_headers


@dataclass(frozen=True, slots=True)
class Envelope:
    """What queries ask for as `$envelope/source`, `$envelope/header[@name = 'priority']` and so on.

    `HeaderError` if the headers are malformed.
    """

    source: str | None = None
    topic: str | None = None
    received: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pack_headers(self.headers)

    @property
    def received_text(self) -> str | None:
        """The time in the form of `xs:dateTime`, in UTC."""
        if self.received is None:
            return None
        return self.received.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
