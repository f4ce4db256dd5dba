"""Connections that do not wait for ever: for a request to arrive, or for an answer to be read."""

import asyncio
import logging

from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """The protocol of connections that wait so long."""

    class Protocol(_TimeoutProtocol):
        patience = seconds

    return Protocol


class _TimeoutProtocol(H11Protocol):
    """HTTP with a deadline for the head of each request, and for what is sent to be taken.

    uvicorn itself waits for both as long as there is a connection. The body of a request has its deadline
    in the gate; what comes after the answer, in the place of the next request, has the one of a head.
    """

    patience: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Whatever the system does not take at once is told by `pause_writing`.
        transport.set_write_buffer_limits(high=0)
        self._unread: asyncio.TimerHandle | None = None
        self._request = self._deadline("no request arrived within %.0f s")

    def handle_events(self) -> None:
        cycle = self.cycle
        super().handle_events()
        if self.cycle is not cycle:
            self._request.cancel()

    def on_response_complete(self) -> None:
        self._request.cancel()
        self._request = self._deadline("no request arrived within %.0f s")
        # There may be one already.
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._deadline("an answer was not read for %.0f s")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._request.cancel()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def _deadline(self, reason: str) -> asyncio.TimerHandle:
        return self.loop.call_later(self.patience, self._give_up, reason)

    def _give_up(self, reason: str) -> None:
        log.info(f"a connection is closed: {reason}", self.patience)
        # To close it in good order would be to wait until all is read.
        self.transport.abort()
