"""Access control: tokens, roles, rate limits, body limits. Only `PUBLIC_PATHS` need no token."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.errors import TamisError
from tamis.model.token import Role, Token
from tamis.service import page
from tamis.service.errors import ServiceError, as_http_exception, error_response
from tamis.service.service import Service

PUBLIC_PATHS = page.PATHS | {"/health", "/ready", "/openapi.json", "/docs"}
"""They reveal nothing: whether the service runs, the description of the API, the files of the page."""

UPLOADS = "/v1/data/"
"""Below this path an admin's requests have limits of their own: they carry whole data sets."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: a valid token."""

    token: Token

    @property
    def tenant(self) -> str:
        return self.token.tenant

    @property
    def subscriber(self) -> str | None:
        """The subscriber it is limited to; None: all of its tenant."""
        return self.token.subscriber

    @property
    def operates(self) -> bool:
        """Whether it is an admin of the whole broker: of the tenant without a name."""
        return self.token.role is Role.ADMIN and not self.token.tenant


class AccessControl:
    """ASGI middleware: checks the token, the rate and the body of each request, before the body is read."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._settings = service.settings.serve
        self._rates: dict[str, _TokenBucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PUBLIC_PATHS:
            try:
                token = await self._token(_secret(Headers(scope=scope)))
                scope.setdefault("state", {})["caller"] = Caller(token)
                self._limit_rate(token)
                receive, send = self._limited(scope, receive, send, token)
            except TamisError as error:
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _token(self, secret: str) -> Token:
        if not secret:
            reason = "send a token: `Authorization: Bearer TOKEN`; `tamis tokens create` makes one"
            raise ServiceError("no-token", reason)
        token = await find_token(self._service, secret)
        if token is None:
            raise ServiceError("bad-token", "this is no token, or it was revoked")
        return token

    def _limit_rate(self, token: Token) -> None:
        rate = token.rate or self._settings.rate
        wait = self._rates.setdefault(token.id, _TokenBucket(rate, time.monotonic())).take(rate)
        if wait:
            reason = f"{rate} requests a second are allowed with this token"
            raise ServiceError("rate-limit", reason, limit=rate, retry_after=max(1, round(wait)))

    def _limited(self, scope: Scope, receive: Receive, send: Send, token: Token) -> tuple[Receive, Send]:
        """Limit the size of a request's body and the time that the client may take to send it.

        Only the time spent waiting for the client counts, so that a slow service refuses no request. Once the
        response has started, no limit applies: it is too late for an error response, and the application
        reads on only to notice a disconnect.
        """
        limit, seconds = token.body or self._settings.body, self._settings.timeout
        if scope["path"].startswith(UPLOADS) and token.role is Role.ADMIN:
            limit, seconds = self._settings.data_body, self._settings.data_timeout
        headers = Headers(scope=scope)
        encoding = headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            reason = f"Content-Encoding {encoding}: not supported, send the body uncompressed"
            raise ServiceError("media-type", reason)
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise _too_long(int(announced), limit)
        remaining = seconds
        size, complete, responding = 0, False, False

        async def limited_receive() -> Message:
            nonlocal remaining, size, complete
            if complete or responding:
                return await receive()
            started = time.monotonic()
            try:
                async with asyncio.timeout(remaining):
                    message = await receive()
            except TimeoutError:
                # The response may have started during the wait.
                if responding:
                    return await receive()
                reason = f"the request took more than {seconds:.0f} s to arrive"
                raise as_http_exception(ServiceError("slow-request", reason)) from None
            remaining -= time.monotonic() - started
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > limit and not responding:
                raise as_http_exception(_too_long(size, limit))
            return message

        async def noting_send(message: Message) -> None:
            nonlocal responding
            responding = True
            await send(message)

        return limited_receive, noting_send


async def find_token(service: Service, secret: str) -> Token | None:
    """The valid token with a secret. In its own pool: no other work can hold it up."""
    return await service.authentication.run(service.catalog.tokens.find, secret)


def secret_of(request: Request) -> str:
    """The secret of a request: to check later whether the token is still valid."""
    return _secret(request.headers)


def _secret(headers: Headers) -> str:
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _too_long(size: int, limit: int) -> ServiceError:
    reason = f"the request has {size} bytes or more, {limit} are allowed"
    return ServiceError("body-limit", reason, value=size, limit=limit)


class _TokenBucket:
    """A token bucket that holds the requests of one second."""

    def __init__(self, rate: int, now: float) -> None:
        self._left = float(rate)
        self._at = now

    def take(self, rate: int) -> float:
        """Take one request; 0, or the seconds until the next one is allowed."""
        now = time.monotonic()
        self._left = min(float(rate), self._left + (now - self._at) * rate)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / rate
        self._left -= 1
        return 0.0


_bearer = HTTPBearer(auto_error=False, description="`tamis tokens create` makes a token.")


def require_role(*roles: Role) -> Callable[[Request], Caller]:
    """A dependency: the caller, who must have one of these roles."""

    def caller(request: Request, _: Annotated[object, Depends(_bearer)] = None) -> Caller:
        found: Caller = request.state.caller
        if found.token.role not in roles:
            needed = " or ".join(roles)
            raise ServiceError("forbidden", f"this needs a token with the role {needed}")
        return found

    return caller


Admin = Annotated[Caller, Depends(require_role(Role.ADMIN))]
Publisher = Annotated[Caller, Depends(require_role(Role.ADMIN, Role.PUBLISHER))]
Subscriber = Annotated[Caller, Depends(require_role(Role.ADMIN, Role.SUBSCRIBER))]
Anyone = Annotated[Caller, Depends(require_role(*Role))]
"""Callers by role. An admin may do everything in its tenant."""
