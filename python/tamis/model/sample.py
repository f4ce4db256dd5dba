"""A message of the sample, and what a batch needs to know to sample."""

from collections.abc import Mapping
from dataclasses import dataclass

from tamis.model.envelope_value import Envelope

MESSAGES = 128
"""Messages of a tenant in a sample."""

MESSAGE_BYTES = 64 << 10
"""Longer messages are not sampled."""

NO_BOUND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """A message of a sample. A sample has the messages with the smallest ranks."""

    rank: int
    """A signed 64-bit hash."""
    tenant: str
    message: bytes
    envelope: Envelope | None = None

    @property
    def size(self) -> int:
        """The bytes of the message and of its headers."""
        headers = {} if self.envelope is None else self.envelope.headers
        return len(self.message) + sum(len(name) + len(value) for name, value in headers.items())


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample a batch."""

    key: int
    """The secret of the hash."""
    bound: int = NO_BOUND
    """Messages have a rank below it."""
    bounds: Mapping[str, int] | None = None
    """A lower bound for each tenant whose sample is full."""
