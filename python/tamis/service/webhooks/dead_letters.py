"""Deliveries that failed for good → dead letters, exactly once.

The catalog first assigns such deliveries to a batch, whose name is the name of the publication. After a crash
the same batch is published again, which has no effect if it was published before.
"""

import pyarrow as pa

from tamis.catalog.dead_deliveries import DeadDeliveries
from tamis.model.batch import Batch
from tamis.service.background.polling import poll
from tamis.service.threads import in_thread
from tamis.sinks.dead_letters import LETTER, DeadLetters

POLL_SECONDS = 0.5


class DeadLetterWriter:
    """Moves dead deliveries to the dead letters."""

    def __init__(self, dead_deliveries: DeadDeliveries, letters: str) -> None:
        """`letters`: the URL of the dead letters."""
        self._dead_deliveries = dead_deliveries
        self._letters = letters
        self.written = 0
        """Letters since the start of the service."""

    def write_pending(self) -> None:
        """Publish all pending batches of dead deliveries, those of an interrupted run included."""
        while names := self._dead_deliveries.claim_batches():
            letters = DeadLetters(self._letters)
            for name in names:
                batch = Batch(f"webhooks-{name}", 0)
                rows = pa.RecordBatch.from_pylist(self._dead_deliveries.letters(name), schema=LETTER)
                if rows.num_rows:
                    letters.publish(batch, letters.write(batch, 0, [rows]))
                self._dead_deliveries.finish(name)
                self.written += rows.num_rows

    async def run(self) -> None:
        """Poll without end."""
        await poll(
            lambda: in_thread(self.write_pending),
            interval=POLL_SECONDS,
            failing="dead deliveries cannot be moved to the dead letters",
        )
