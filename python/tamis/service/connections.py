"""HTTP connections with time-outs: for a request to arrive, and for a response to be read.

uvicorn waits for both as long as the connection lasts. The body of a request has its own deadline, in
`api/security.py`.
"""

import asyncio
import logging

from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """The class of connections with this time-out."""

    class Protocol(_TimeoutProtocol):
        timeout = seconds

    return Protocol


class _TimeoutProtocol(H11Protocol):
    """Closes a connection when the head of the next request, or the reading of a response, takes too long."""

    timeout: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # With an empty buffer, `pause_writing` is called as soon as the client reads too slowly.
        transport.set_write_buffer_limits(high=0)
        self._read_deadline: asyncio.TimerHandle | None = None
        self._head_deadline = self._deadline("no request arrived within %.0f s")

    def handle_events(self) -> None:
        cycle = self.cycle
        super().handle_events()
        if self.cycle is not cycle:
            self._head_deadline.cancel()

    def on_response_complete(self) -> None:
        self._head_deadline.cancel()
        self._head_deadline = self._deadline("no request arrived within %.0f s")
        # After the new deadline: this may already start the next request.
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_deadline = self._deadline("a response was not read for %.0f s")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._read_deadline is not None:
            self._read_deadline.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_deadline.cancel()
        if self._read_deadline is not None:
            self._read_deadline.cancel()
        super().connection_lost(exc)

    def _deadline(self, reason: str) -> asyncio.TimerHandle:
        return self.loop.call_later(self.timeout, self._abort, reason)

    def _abort(self, reason: str) -> None:
        log.info(f"connection closed: {reason}", self.timeout)
        # A clean close would wait until everything is read.
        self.transport.abort()
