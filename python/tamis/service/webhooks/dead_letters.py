"""Deliveries that could not be made → dead letters, where they can be seen and replayed."""

import asyncio
import logging

import pyarrow as pa

from tamis.catalog.dead_deliveries import DeadDeliveries
from tamis.errors import TamisError
from tamis.model.batch import Batch
from tamis.service.threads import in_thread
from tamis.sinks.dead_letters import LETTER, DeadLetters

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks at what could not be delivered."""

PAUSE = 5.0
"""Seconds before the next one, when something fails."""


class DeadLetterWriter:
    """Makes letters of dead deliveries, each once."""

    def __init__(self, burials: DeadDeliveries, letters: str) -> None:
        """`letters`: the URL of the dead letters."""
        self._dead_deliveries = burials
        self._letters = letters
        self.written = 0
        """How many, since it started."""

    def write_pending(self) -> None:
        """Bury what there is to write_pending. What an earlier one began is finished first or again."""
        while burials := self._dead_deliveries.claim_batches():
            letters = DeadLetters(self._letters)
            for burial in burials:
                # Its name is its own: what is published under it already is the same.
                batch = Batch(f"webhooks-{burial}", 0)
                rows = pa.RecordBatch.from_pylist(self._dead_deliveries.letters(burial), schema=LETTER)
                if rows.num_rows:
                    letters.publish(batch, letters.write(batch, 0, [rows]))
                self._dead_deliveries.finish(burial)
                self.written += rows.num_rows

    async def run(self) -> None:
        """Go on for ever."""
        failing = False
        while True:
            try:
                await in_thread(self.write_pending)
                failing = False
            except TamisError as error:
                if not failing:
                    log.error("dead deliveries wait to become letters: %s", error)
                failing = True
            await asyncio.sleep(PAUSE if failing else LOOK)
