"""All links of a broker while its job runs: a thread for each, so that a dead link delays no other."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from tamis.network.link_end import LinkEnd, LinkStatus

log = logging.getLogger(__name__)

PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two exchanges of a link; twice as many after each one that fails."""


class Exchange:
    """Exchanges until it is closed."""

    def __init__(self, ends: Sequence[LinkEnd], changed: Callable[[LinkStatus], None]) -> None:
        """`changed` is called, in the thread of a link, when its state or code changes."""
        self._ends = ends
        self._changed = changed
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(end,), name=f"link {end.link.name}", daemon=True)
            for end in ends
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Wait for the running exchanges."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def _run(self, end: LinkEnd) -> None:
        pause, before = PAUSE, end.status
        while not self._closing.wait(pause):
            status = _exchanged(end)
            pause = PAUSE if status.state == "up" else min(pause * 2, LONGEST_PAUSE)
            if (status.state, status.code) != (before.state, before.code):
                self._changed(status)
            before = status


def _exchanged(end: LinkEnd) -> LinkStatus:
    """The status after an exchange. No error ends the thread: the link would look as if it worked."""
    try:
        return end.exchange()
    except Exception as error:
        log.exception("link %s", end.link.name)
        return replace(end.status, state="stopped", code=type(error).__name__, reason=str(error))
