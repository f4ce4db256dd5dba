"""HTTP requests to webhooks, safe against server-side request forgery.

Subscribers choose the URLs. Every address that a host resolves to is checked, and the connection goes to one
of the checked addresses. Redirects are not followed, proxies of the environment are not used, and only the
first bytes of an answer are read.
"""

import asyncio
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpcore
import httpx

from tamis.errors import SinkError
from tamis.sinks.addresses import Addresses

CONNECT_SECONDS = 5.0
"""The connect timeout; part of the timeout of a request."""

ANSWER_BYTES = 4096
"""At most this much of an answer is read; then the connection is closed."""

IDLE_SECONDS = 30.0
"""How long an idle connection is kept for the next request."""

MAX_URL_CHARACTERS = 2_000

_HOST = re.compile(rb"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
"""A DNS name or an IP address."""

_FAILURES = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError)


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a request."""

    status: int | None
    """The HTTP status; None if there was no answer."""
    error: str | None = None
    """Why there was no answer."""
    retry_after: float | None = None
    """Seconds, from the header Retry-After."""

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def description(self) -> str:
        """One line for people."""
        if self.status is None:
            return self.error or "no answer"
        redirect = ", a redirect, which is not followed" if 300 <= self.status < 400 else ""
        return f"answered with {self.status}{redirect}"


def validate_url(url: str, addresses: Addresses) -> str:
    """Normalise a URL; `SinkError` if requests to it can never be allowed.

    Names are not resolved here: their addresses are checked when a connection is made.
    """
    try:
        parsed = httpx.URL(url)
        port = parsed.port
    except (httpx.InvalidURL, ValueError) as error:
        raise _bad_url(str(error)) from error
    if len(url) > MAX_URL_CHARACTERS:
        raise _bad_url(f"it has {len(url)} characters, {MAX_URL_CHARACTERS} are allowed")
    if parsed.scheme not in ("http", "https") or not _HOST.fullmatch(parsed.raw_host):
        raise _bad_url("it must have the form https://HOST/…")
    if parsed.userinfo:
        raise _bad_url("it must not have a user or a password: requests are signed instead")
    if parsed.fragment:
        raise _bad_url("it must not have a fragment (#…)")
    if port is not None and not 0 < port < 65_536:
        raise _bad_url(f"there is no port {port}")
    if parsed.scheme == "http" and not addresses.lists_any:
        raise _bad_url("it must be https")
    with suppress(ValueError):
        if not _guard(addresses, parsed.scheme)(parsed.host):
            raise _bad_url(f"{parsed.host} is not a public address, or not allowed for {parsed.scheme}")
    return str(parsed)


def _bad_url(reason: str) -> SinkError:
    return SinkError("bad-url", f"url: {reason}")


class Poster:
    """Sends requests, a limited number at a time."""

    def __init__(self, addresses: Addresses, timeout: float, concurrency: int) -> None:
        """Create it on the event loop that uses it; `timeout` is for a request as a whole."""
        self._timeout = timeout
        # A separate pool: a name server that hangs must not block other work.
        self._resolving = ThreadPoolExecutor(concurrency, thread_name_prefix="resolve")
        # One pool per scheme: http is allowed only to listed networks.
        self._pools = {
            scheme: httpcore.AsyncConnectionPool(
                ssl_context=httpcore.default_ssl_context() if scheme == "https" else None,
                max_connections=concurrency,
                keepalive_expiry=IDLE_SECONDS,
                network_backend=_GuardedBackend(_guard(addresses, scheme), self._resolving),
            )
            for scheme in ("http", "https")
        }

    async def close(self) -> None:
        """Close its connections."""
        for pool in self._pools.values():
            await pool.aclose()
        self._resolving.shutdown(wait=False, cancel_futures=True)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a request. Every failure is an `Answer` too; nothing is raised."""
        parsed = httpx.URL(url)
        place = httpcore.URL(
            scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
        )
        all_headers = {"Host": parsed.netloc.decode("ascii"), **headers}
        limits = {"connect": min(CONNECT_SECONDS, self._timeout), "pool": self._timeout}
        answer = Answer(None, f"no answer within {self._timeout:g} s")
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._pools[parsed.scheme].stream(
                    "POST",
                    place,
                    headers=list(all_headers.items()),
                    content=body,
                    extensions={"timeout": limits},
                ) as response,
            ):
                # The status decides, even if the body never ends.
                answer = Answer(response.status, retry_after=_retry_after(response.headers))
                size = 0
                async for chunk in response.aiter_stream():
                    size += len(chunk)
                    if size >= ANSWER_BYTES:
                        break
        except (TimeoutError, httpcore.TimeoutException):
            pass
        except SinkError as error:
            answer = Answer(None, error.reason)
        except _FAILURES as error:
            if answer.status is None:
                answer = Answer(None, f"no connection, or it was lost: {error or type(error).__name__}")
        return answer


def _guard(addresses: Addresses, scheme: str) -> Callable[[str], bool]:
    """A predicate for addresses; it raises `ValueError` for what is not an address."""
    return addresses.is_allowed if scheme == "https" else addresses.is_listed


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to checked addresses. TLS and headers still use the host's name."""

    def __init__(self, guard: Callable[[str], bool], resolving: ThreadPoolExecutor) -> None:
        self._guard = guard
        self._resolving = resolving
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        end = time.monotonic() + (timeout or CONNECT_SECONDS)
        addresses = await self._resolve(host, port, end - time.monotonic())
        for address in addresses:
            # One forbidden address makes all of them suspicious.
            if not self._guard(address):
                reason = f"{host} resolves to a forbidden address; see webhooks.allow"
                raise SinkError("address-refused", reason)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for left, address in enumerate(addresses, -len(addresses)):
            # Each address gets an equal share of the time that is left.
            share = max(0.0, end - time.monotonic()) / -left
            try:
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _resolve(self, host: str, port: int, timeout: float) -> list[str]:
        """The distinct addresses of a host."""
        loop = asyncio.get_running_loop()
        look_up = loop.run_in_executor(self._resolving, _addresses, host, port)
        try:
            return await asyncio.wait_for(look_up, timeout)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} was not resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise SinkError("address-refused", "a webhook cannot be a Unix socket")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Retry-After in seconds; it may be a number or a date."""
    for name, value in headers:
        if name.lower() == b"retry-after":
            text = value.decode("latin-1").strip()
            if text.isascii() and text.isdecimal():
                # Truncated: a longer number would overflow dates.
                return float(text[:15])
            with suppress(ValueError, TypeError):
                return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None
