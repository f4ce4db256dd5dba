"""The settings of Kafka as a source of messages and as a sink of deliveries; the headers of both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter

from tamis.errors import TamisError
from tamis.model.matching import Limits

ID_HEADER = "tamis-id"
"""The header in which a publisher may give the message id."""

DELIVERY_HEADERS = {
    "tamis-delivery": "id",
    "tamis-message": "message",
    "tamis-source": "source",
    "tamis-subscription": "subscription",
    "tamis-revision": "revision",
}
"""The headers of a delivery, and the columns with their values."""

_TOPIC_CHARACTERS = "._-"
"""Characters that a topic's name may have besides letters and digits."""


TIMEOUT_MS = 20_000
"""Milliseconds without an answer after which Kafka counts as unreachable; its clients wait for minutes."""


class KafkaError(TamisError):
    """Invalid settings for Kafka."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Topics to read messages from."""

    name: str
    tenant: str
    servers: str
    topics: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    schema: str | None = None
    """The DTD that its messages conform to."""
    starting: str = "earliest"
    """Where a new checkpoint starts: `earliest`, `latest`, or offsets by topic and partition as JSON."""
    headers: tuple[str, ...] | None = None
    """The names of the record headers that become headers of the message; None: all."""
    max_offsets: int = 100_000
    """The most messages a batch may have."""
    client: Mapping[str, str] = field(default_factory=dict)
    """More settings of the Kafka client, such as those for TLS and authentication."""

    @property
    def location(self) -> str:
        """Names it in error messages."""
        return f"Kafka at {self.servers}"


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Topics to write deliveries to."""

    servers: str
    topic: str = "deliveries-{tenant}"
    """The topic's name; `{tenant}` and `{subscriber}` are replaced by those of a delivery."""
    client: Mapping[str, str] = field(default_factory=dict)

    @property
    def location(self) -> str:
        """Names it in error messages."""
        return f"Kafka at {self.servers}"

    def __post_init__(self) -> None:
        for literal, column in self.parts():
            if column not in (None, "tenant", "subscriber"):
                reason = (
                    f"a topic may contain {{tenant}} and {{subscriber}}, but not {{{column}}}: {self.topic!r}"
                )
                raise KafkaError("bad-topic", reason)
            if not re.fullmatch(r"[A-Za-z0-9._-]*", literal):
                reason = f"{literal!r} cannot be in a topic's name: letters, digits, `.`, `_` and `-` can"
                raise KafkaError("bad-topic", reason)

    def parts(self) -> list[tuple[str, str | None]]:
        """The pattern as pairs: literal text, and the column that follows it."""
        try:
            return [(literal, column) for literal, column, _, _ in Formatter().parse(self.topic)]
        except ValueError as error:
            raise KafkaError("bad-topic", f"the topic {self.topic!r} is no valid pattern: {error}") from error

    def plain_names(self) -> str:
        """A regular expression for the names that are used in a topic unchanged; other names are hashed.

        Two names must never give the same topic: tenants would read each other's deliveries. So a name is
        plain only if it shares no character with the pattern's literal text and does not look like a hash.
        """
        text = "".join(literal for literal, _ in self.parts())
        others = "".join(c for c in _TOPIC_CHARACTERS if c not in text).replace("-", r"\-")
        return rf"^(?!sha[0-9a-f]{{64}}$)[A-Za-z0-9{others}]{{1,80}}$"
