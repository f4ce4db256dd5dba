"""The thread of a broker's routing: a step now and then, and at once when a notice arrives."""

import logging
import threading
from collections.abc import Callable

from tamis.errors import TamisError
from tamis.network.routing import Routing

log = logging.getLogger(__name__)

PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Seconds between two steps; twice as many after each one that fails."""


class RoutingThread:
    """Steps until it is closed."""

    def __init__(self, routing: Routing, failed: Callable[[TamisError | None], None]) -> None:
        """`failed` is called, in the thread, when a step fails, and with None when one succeeds again."""
        self._routing = routing
        self._failed = failed
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="routing", daemon=True)
        self._thread.start()

    def receive(self, link: str, notice: bytes) -> None:
        """A notice has arrived over a link."""
        self._routing.receive(link, notice)
        self._wake.set()

    def close(self) -> None:
        """Wait for the running step."""
        self._closing = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        pause, failing = PAUSE, False
        while not self._closing:
            try:
                self._routing.step()
            except Exception as error:
                # No error ends the thread: nothing would be established any more.
                known = error if isinstance(error, TamisError) else None
                if known is None:
                    log.exception("routing")
                self._failed(known or TamisError(type(error).__name__, str(error)))
                pause, failing = min(pause * 2, LONGEST_PAUSE), True
            else:
                if failing:
                    self._failed(None)
                pause, failing = PAUSE, False
            self._wake.wait(pause)
            self._wake.clear()
