"""Messages that arrived over the links of a broker, as a source of the job."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamis.model.matching import Limits

NAME = "network"
"""The name of this source: of its checkpoint, its batches and its status. Messages keep their own source."""


@dataclass(frozen=True, slots=True)
class ArrivalsSource:
    """The messages in the journal of arrivals in `path`."""

    path: Path
    limits: Limits = field(default_factory=Limits)
    max_messages: int = 100_000
    """A batch has no more, unless one parcel has."""
    max_bytes: int = 128 << 20

    name = NAME
    tenant = None
    """Each message has its own."""
    schema = None

    @property
    def location(self) -> str:
        """Names it in error messages."""
        return str(self.path)

    def to_json(self) -> dict[str, Any]:
        """The fields that the readers of the journal need, as JSON."""
        return {"path": str(self.path), "max_messages": self.max_messages, "max_bytes": self.max_bytes}
