"""Kafka as a source of messages and as a place for deliveries: what is configured, and what headers mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter

from tamis.errors import TamisError
from tamis.model.matching import Limits

ID_HEADER = "tamis-id"
"""A publisher may give the message id in it."""

DELIVERY_HEADERS = {
    "tamis-delivery": "id",
    "tamis-message": "message",
    "tamis-source": "source",
    "tamis-subscription": "subscription",
    "tamis-revision": "revision",
}
"""The headers of a delivery, and the columns they come from."""

_TOPIC_CHARACTERS = "._-"
"""What a topic's name may have beside letters and digits."""


SILENCE_MS = 20_000
"""So long may Kafka not answer before it is called unreachable; its clients' own defaults are minutes."""


class KafkaError(TamisError):
    """Settings for Kafka that cannot be."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Topics that messages come from."""

    name: str
    tenant: str
    servers: str
    topics: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    schema: str | None = None
    """The DTD that its messages conform to."""
    starting: str = "earliest"
    """Where a new query begins: `earliest`, `latest`, or offsets by topic and partition as JSON."""
    max_offsets: int = 100_000
    """How many messages a batch takes at most."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of Kafka's client, for security and the like."""

    @property
    def place(self) -> str:
        """For errors."""
        return f"Kafka at {self.servers}"


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Topics that deliveries go to."""

    servers: str
    topic: str = "deliveries-{tenant}"
    """The topic's name, where `{tenant}` and `{subscriber}` stand for those of a delivery."""
    client: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """For errors."""
        return f"Kafka at {self.servers}"

    def __post_init__(self) -> None:
        for literal, column in self.parts():
            if column not in (None, "tenant", "subscriber"):
                reason = (
                    f"a topic may have {{tenant}} and {{subscriber}}, but no {{{column}}}: {self.topic!r}"
                )
                raise KafkaError("bad-topic", reason)
            if not re.fullmatch(r"[A-Za-z0-9._-]*", literal):
                reason = f"{literal!r} cannot be in a topic's name: letters, digits, `.`, `_` and `-` can"
                raise KafkaError("bad-topic", reason)

    def parts(self) -> list[tuple[str, str | None]]:
        """The pattern: text, and the column that follows it."""
        try:
            return [(literal, column) for literal, column, _, _ in Formatter().parse(self.topic)]
        except ValueError as error:
            raise KafkaError("bad-topic", f"the topic {self.topic!r} is no pattern: {error}") from error

    def plain_names(self) -> str:
        """The names that stand in a topic as they are, as a regular expression; others are hashed.

        No two names may lead to one topic: tenants would read each other's deliveries. So a name is plain
        only if it has no character of the pattern's own text, and does not look like a hash.
        """
        text = "".join(literal for literal, _ in self.parts())
        others = "".join(c for c in _TOPIC_CHARACTERS if c not in text).replace("-", r"\-")
        return rf"^(?!sha[0-9a-f]{{64}}$)[A-Za-z0-9{others}]{{1,80}}$"
