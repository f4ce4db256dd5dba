"""Clients that are slow, or never read: they are not waited for. By raw sockets: no library is so rude."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tamis.model.token import Role
from tamis.service.api import deliveries
from tests.helpers.delivery_rows import delivery
from tests.helpers.served import Served, serving, settings_in
from tests.helpers.waiting import SECONDS, until

TIMEOUT = 2.0
"""Seconds. Clients send what they mean to send at once: a busy machine needs less than this for it."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path, timeout=TIMEOUT)) as served:
        yield served


@contextmanager
def connected(served: Served, sent: str) -> Iterator[socket.socket]:
    """A connection on which something was sent."""
    with socket.create_connection(("127.0.0.1", served.settings.serve.port), timeout=SECONDS) as connection:
        connection.sendall(sent.encode())
        yield connection


def head(served: Served, what: str, *lines: str) -> str:
    token = f"Authorization: Bearer {served.secret(Role.ADMIN)}"
    return "\r\n".join([f"{what} HTTP/1.1", "Host: x", token, *lines, "", ""])


def all_of(connection: socket.socket) -> bytes:
    """All bytes that are received until the connection ends, in any way."""
    received = b""
    try:
        while some := connection.recv(1 << 16):
            received += some
    except ConnectionResetError:
        pass
    return received


def drip(connection: socket.socket) -> None:
    """Send a byte now and then until the other side has had enough."""

    def refused() -> bool:
        try:
            connection.sendall(b"x")
        except OSError:
            return True
        return False

    until(refused, "the end of a slow request")


@pytest.mark.parametrize("begun", ["", "GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_head_that_never_arrives(served: Served, begun: str) -> None:
    with connected(served, begun) as connection:
        assert all_of(connection) == b""
    with connected(served, "GET /health HTTP/1.1\r\nX-Slow: ") as connection:
        drip(connection)
    assert served.plain().get("/health").status_code == 200


def test_a_second_head_that_never_arrives(served: Served) -> None:
    with connected(served, head(served, "GET /health") + "GET /health HTTP/1.1\r\n") as connection:
        assert all_of(connection).startswith(b"HTTP/1.1 200")


def test_a_body_that_never_arrives(served: Served) -> None:
    kind = "Content-Type: application/json"
    asked = head(served, "POST /v1/subscriptions", kind, "Content-Length: 100")
    with connected(served, f"{asked}{{") as connection:
        assert all_of(connection).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("path", ["/v1/subscriptions", "/health"])
def test_a_body_that_nobody_wants(served: Served, path: str) -> None:
    """Refused, or answered, before it arrived: what still comes is not listened to for long."""
    asked = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with connected(served, asked) as connection:
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 40")
        drip(connection)


def test_a_stream_that_is_never_read(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    large = [delivery(n, "ann", payload=b"x" * (1 << 20)) for n in range(40)]
    served.catalog.mailbox.store("c-0.json", large)
    with caplog.at_level(logging.INFO):
        asked = head(served, "GET /v1/deliveries/events?subscriber=ann")
        with connected(served, asked):
            # A request is logged when all is over.
            until(
                lambda: [one for one in caplog.records if one.name == "tamis.requests"],
                "the end of the stream",
            )
    assert "was not read" in caplog.text


def test_a_body_that_never_arrives_does_not_end_a_response_that_has_started(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service listens on for a disconnect, without the deadline for bodies."""
    monkeypatch.setattr(deliveries, "HEARTBEAT", TIMEOUT / 4)
    asked = head(served, "GET /v1/deliveries/events?subscriber=ann", "Content-Length: 100")
    with connected(served, asked) as connection:
        received = b""
        # For longer than a body may take.
        while received.count(b": still here") < 6:
            some = connection.recv(1 << 16)
            assert some, "the stream ended"
            received += some
    assert "Traceback" not in caplog.text


def test_a_slow_reader_gets_the_whole_response(tmp_path: Path) -> None:
    """All of it takes longer than the service waits, no part of it does."""
    count, timeout = 40, 4.0
    with serving(settings_in(tmp_path, timeout=timeout)) as served:
        large = [delivery(n, "ann", payload=b"x" * (1 << 20)) for n in range(count)]
        served.catalog.mailbox.store("c-0.json", large)
        with connected(served, head(served, "GET /v1/deliveries/events?subscriber=ann")) as connection:
            begun = time.monotonic()
            received, pauses = 0, 0
            while received < count << 20:
                if received >> 22 > pauses:
                    pauses += 1
                    time.sleep(timeout / 6)
                some = connection.recv(1 << 16)
                assert some, f"cut off after {received} bytes"
                received += some.count(b"x")
            assert time.monotonic() - begun > timeout
