"""The methods of `tamis.Index` that concern shards."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.model.matching import Limits
from tamis.model.message_batch import Messages, arrow_messages

if TYPE_CHECKING:
    # Arrow takes 0.2 s to import: functions import it when they need it.
    import pyarrow as pa

_DEFAULT_LIMITS = Limits()


class ShardMethods:
    """What an index has of its shards."""

    def _current(self) -> Any:
        """The kernel's index, with all changes visible."""
        raise NotImplementedError

    @property
    def asks_envelope(self) -> bool:
        """Whether a query may ask for the envelope of a message; otherwise it need not be given."""
        asks: bool = self._current().asks_envelope
        return asks

    @property
    def shards(self) -> list[tuple[str, int, bool]]:
        """The name of each shard, how many queries it has, and whether it is open; empty if there is one."""
        found: list[tuple[str, int, bool]] = self._current().shards
        return found

    def route(
        self, messages: Messages, *, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> "pa.RecordBatch":
        """The `shards` that each message visits, and its `probes`: how many values were looked up."""
        return _record_batch(self._current().route(arrow_messages(messages), tenant, limits))

    def rows(self) -> "pa.RecordBatch":
        """The `target`, `tenant` and canonical `query` of each target."""
        return _record_batch(self._current().rows())

    def write_shard(self, directory: Path, *, summary_bytes: int) -> tuple[str, int]:
        """Write the index as a shard with its summary; its name, and how many queries it has."""
        written: tuple[str, int] = self._current().write_shard(directory, summary_bytes)
        return written


def _record_batch(exported: Any) -> "pa.RecordBatch":
    import pyarrow as pa

    return pa.record_batch(exported)
