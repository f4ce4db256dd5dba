"""The HTTP server: uvicorn with limits, time-outs and a clean stop."""

import signal
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tamis.service.connections import protocol_with_timeout
from tamis.service.service import Service
from tamis.settings import ServeSettings

KEEP_ALIVE = 15
"""Seconds that a connection may be idle between two requests."""

GRACE = 10
"""Seconds that running requests get to finish when the service stops."""

MAX_CONNECTIONS = 1_000
"""Concurrent connections; more get 503."""


class Server(uvicorn.Server):
    """Serves an application until a signal."""

    def __init__(self, app: FastAPI, settings: ServeSettings) -> None:
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            # `logs.py` logs requests.
            log_config=None,
            access_log=False,
            server_header=False,
            http=protocol_with_timeout(settings.timeout),
            ws="none",
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=MAX_CONNECTIONS,
        )
        super().__init__(config)
        self._service: Service = app.state.service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal stops the server cleanly; a second one has its default effect."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Event streams end first: they would never end by themselves."""
        self._service.stop()
        await super().shutdown(sockets)
