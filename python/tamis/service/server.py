"""The HTTP server: uvicorn, with what a service needs of it."""

import signal
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tamis.service.connections import protocol_with_timeout
from tamis.service.service import Service
from tamis.settings import ServeSettings

KEEP_ALIVE = 15
"""Seconds that a connection may stay open between two requests."""

GRACE = 10
"""Seconds that running requests get when the service stops."""

CONNECTIONS = 1_000
"""So many at a time; more are told to come again."""


class Server(uvicorn.Server):
    """Serves an application until a signal."""

    def __init__(self, app: FastAPI, settings: ServeSettings) -> None:
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            # What there is to log is logged by `logs.py`.
            log_config=None,
            access_log=False,
            server_header=False,
            http=protocol_with_timeout(settings.timeout),
            ws="none",
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=CONNECTIONS,
        )
        super().__init__(config)
        self._service: Service = app.state.service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends it in good order; a second one takes its usual way."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let those go first who would wait for ever."""
        self._service.stop()
        await super().shutdown(sockets)
