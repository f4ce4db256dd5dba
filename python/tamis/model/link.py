"""The state of one end of a link."""

from typing import Literal, TypeAlias

LinkState: TypeAlias = Literal["up", "stopped", "unreachable"]
"""stopped: what arrives cannot be continued; unreachable: its carrier cannot be read or written."""
