"""A webhook receiver: a server that answers as a test configures it, and records its requests."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass(frozen=True)
class Reply:
    """The answer to a request."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


HANG = Reply(0)
"""No answer, and the connection stays open."""

CLOSE = Reply(1)
"""No answer, and the connection is closed."""


@dataclass(frozen=True)
class Got:
    """A request."""

    path: str
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class Receiver:
    """Answers the first requests by what is in `replies`, one each, and all others by `otherwise`."""

    def __init__(self, port: int, scheme: str) -> None:
        self.port = port
        self.url = f"{scheme}://127.0.0.1:{port}/hook"
        self.got: list[Got] = []
        self.replies: list[Reply] = []
        self.otherwise = Reply()
        self.choose: Callable[[Got], Reply] | None = None
        """Instead of both."""
        self.closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[str]:
        """The ids of the received requests, in order."""
        return [got.id for got in self.got]

    def take(self, got: Got) -> Reply:
        with self._lock:
            self.got.append(got)
            if self.choose is not None:
                return self.choose(got)
            return self.replies.pop(0) if self.replies else self.otherwise


@contextmanager
def receiving(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on the loopback, stopped afterwards."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = receiver.take(Got(self.path, headers, body))
            if reply in (HANG, CLOSE):
                if reply is HANG:
                    receiver.closing.wait()
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        # More connect at once than may wait by default.
        request_queue_size = 128
        connections: ClassVar[list[socket.socket]] = []

        def process_request(self, request: Any, address: Any) -> None:
            self.connections.append(request)
            super().process_request(request, address)

        def handle_error(self, request: Any, address: Any) -> None:
            """Ignore clients that disconnect early: some tests do that."""

    with Server(("127.0.0.1", port), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        receiver = Receiver(server.server_port, "http" if tls is None else "https")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.closing.set()
            server.shutdown()
            thread.join()
            for connection in server.connections:
                # A kept-alive connection would wait for the next request.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
