"""Webhooks: requests to places that others name, sent so that nobody can make bad use of it.

Every address that a host resolves to is checked, and one of those that were checked is connected to. No
redirect is followed, no proxy of the environment used, and little is read of the answer.
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

CONNECT = 5.0
"""Seconds to connect in, of all that a request may take."""

ANSWER = 4096
"""Bytes that are read of an answer; a connection with more is closed."""

IDLE = 30.0
"""Seconds that a connection is kept for the next request."""

LONGEST_URL = 2_000

_HOST = re.compile(rb"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
"""A name, as name servers know it, or an address."""

_FAILURES = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request."""

    status: int | None
    """Of HTTP; None if there was no answer."""
    error: str | None = None
    """Why there was none."""
    retry_after: float | None = None
    """Seconds to wait, if the answer names them."""

    @property
    def good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def told(self) -> str:
        """For people."""
        if self.status is None:
            return self.error or "no answer"
        redirect = ", a redirect, which is not followed" if 300 <= self.status < 400 else ""
        return f"answered with {self.status}{redirect}"


def checked_url(url: str, addresses: Addresses) -> str:
    """A URL as it is kept; `SinkError` if nothing can ever be sent there.

    Names are not resolved: what they resolve to counts when they are connected to.
    """
    try:
        parsed = httpx.URL(url)
        port = parsed.port
    except (httpx.InvalidURL, ValueError) as error:
        raise _bad_url(str(error)) from error
    if len(url) > LONGEST_URL:
        raise _bad_url(f"it has {len(url)} characters, {LONGEST_URL} are allowed")
    if parsed.scheme not in ("http", "https") or not _HOST.fullmatch(parsed.raw_host):
        raise _bad_url("it is https://HOST/…")
    if parsed.userinfo:
        raise _bad_url("it has a user or a password; what is sent is signed, so none is needed")
    if parsed.fragment:
        raise _bad_url("what comes after # is never sent")
    if port is not None and not 0 < port < 65_536:
        raise _bad_url(f"there is no port {port}")
    if parsed.scheme == "http" and not addresses.any_named:
        raise _bad_url("it has to be https")
    with suppress(ValueError):
        if not _guard(addresses, parsed.scheme)(parsed.host):
            raise _bad_url(f"{parsed.host} is no address on the internet, or none for {parsed.scheme}")
    return str(parsed)


def _bad_url(reason: str) -> SinkError:
    return SinkError("bad-url", f"url: {reason}")


class Poster:
    """Sends requests, so many at a time."""

    def __init__(self, addresses: Addresses, timeout: float, concurrency: int) -> None:
        """To be made on the event loop that it is used on; `timeout` is for a request as a whole."""
        self._timeout = timeout
        # Its own: a name server that hangs must hold up nobody who resolves something else.
        self._resolving = ThreadPoolExecutor(concurrency, thread_name_prefix="resolve")
        # Unencrypted only to what the settings name: a pool for each.
        self._pools = {
            scheme: httpcore.AsyncConnectionPool(
                ssl_context=httpcore.default_ssl_context() if scheme == "https" else None,
                max_connections=concurrency,
                keepalive_expiry=IDLE,
                network_backend=_Guarded(_guard(addresses, scheme), self._resolving),
            )
            for scheme in ("http", "https")
        }

    async def close(self) -> None:
        """Close its connections."""
        for pool in self._pools.values():
            await pool.aclose()
        self._resolving.shutdown(wait=False, cancel_futures=True)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a request, and say what came of it: never an error."""
        parsed = httpx.URL(url)
        place = httpcore.URL(
            scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
        )
        given = {"Host": parsed.netloc.decode("ascii"), **headers}
        limits = {"connect": min(CONNECT, self._timeout), "pool": self._timeout}
        answer = Answer(None, f"no answer within {self._timeout:g} s")
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._pools[parsed.scheme].stream(
                    "POST", place, headers=list(given.items()), content=body, extensions={"timeout": limits}
                ) as response,
            ):
                # It counts from here, whatever becomes of the rest.
                answer = Answer(response.status, retry_after=_retry_after(response.headers))
                size = 0
                async for chunk in response.aiter_stream():
                    size += len(chunk)
                    if size >= ANSWER:
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
    """Says whether an address may be connected to; `ValueError` if it is none."""
    return addresses.allowed if scheme == "https" else addresses.named


class _Guarded(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were checked. TLS and headers know the host by its name, as ever."""

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
        end = time.monotonic() + (timeout or CONNECT)
        addresses = await self._resolved(host, port, end - time.monotonic())
        for address in addresses:
            # One that must not be among them makes all of them suspicious.
            if not self._guard(address):
                reason = f"{host} resolves to an address that must not be connected to; see webhooks.allow"
                raise SinkError("address-refused", reason)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for left, address in enumerate(addresses, -len(addresses)):
            # The last one may use up what is left of the time, an earlier one its share.
            share = max(0.0, end - time.monotonic()) / -left
            try:
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _resolved(self, host: str, port: int, timeout: float) -> list[str]:
        """The addresses of a host, each once."""
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
        raise SinkError("address-refused", "no webhook is a file")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Seconds, from a number of them or a date."""
    for name, value in headers:
        if name.lower() == b"retry-after":
            text = value.decode("latin-1").strip()
            if text.isascii() and text.isdecimal():
                # A number without end would be none that times can be made of.
                return float(text[:15])
            with suppress(ValueError, TypeError):
                return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None
