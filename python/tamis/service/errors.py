"""Errors of the API: one JSON form for all, and one table of status codes."""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from tamis.errors import DataError, PositionedError, QueryError, TamisError

log = logging.getLogger(__name__)

STATUS: Mapping[str, int] = {
    # The request.
    "bad-request": 422,
    "not-found": 404,
    "method-not-allowed": 405,
    "media-type": 415,
    "encoding-mismatch": 422,
    "bad-encoding": 422,
    "bad-header": 422,
    "header-limit": 422,
    "body-limit": 413,
    "message-limit": 413,
    "slow-request": 408,
    "rate-limit": 429,
    "concurrency-limit": 429,
    # The token.
    "no-token": 401,
    "bad-token": 401,
    "forbidden": 403,
    # The resource.
    "bad-value": 422,
    "name-limit": 422,
    "data-name": 422,
    "unknown-prefix-map": 422,
    "no-source": 422,
    "no-mailbox": 422,
    "no-webhook": 422,
    "no-target": 422,
    "bad-url": 422,
    "unknown-subscription": 404,
    "unknown-webhook": 404,
    "unknown-data": 404,
    "unknown-version": 404,
    "no-letter": 404,
    "no-job": 404,
    "subscription-exists": 409,
    "webhook-exists": 409,
    "webhook-used": 409,
    "data-exists": 409,
    "data-in-use": 409,
    "data-changed": 409,
    "upload-lost": 409,
    "prefix-map-used": 409,
    "not-replayable": 409,
    # The service: try again later.
    "not-ready": 503,
    "busy": 503,
    "backlog": 503,
    "disk-full": 503,
    "not-stored": 503,
    "catalog-locked": 503,
    "catalog-unreachable": 503,
    "store-unreachable": 503,
    "sink-unreachable": 503,
    "sink-full": 503,
    "no-generation": 503,
}
"""Status by code. A query or message that is refused is 422, with its position; any other error is 500."""

_FIELD = re.compile(r"(?!constrained-str$|str$)[\w-]+")
"""A name of a field or parameter; pydantic also puts types into the location of an error."""

RETRY_SECONDS = 5
"""Retry-After of errors that do not set it."""


class ServiceError(TamisError):
    """A request that is refused."""

    def __init__(
        self,
        code: str,
        reason: str,
        *,
        value: int | None = None,
        limit: int | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(code, reason)
        self.value = value
        self.limit = limit
        self.retry_after = retry_after


class Position(BaseModel):
    """A position in a query or a message."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    offset: int
    """The byte offset in UTF-8, from 0."""
    line: int
    """The line, from 1."""
    column: int
    """The column in characters, from 1."""


class ErrorDetail(BaseModel):
    """An error."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    code: str
    """A stable code for programs."""
    reason: str
    """What is wrong, for people; the wording may change."""
    position: Position | None = None
    """Where, in a query or a message."""
    value: int | None = None
    """The value that exceeds a limit."""
    limit: int | None = None
    """The limit."""


class WarningDetail(BaseModel):
    """A warning of a query."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    code: str
    """A stable code for programs."""
    reason: str
    """What is probably not intended, for people; the wording may change."""
    line: int
    """The line in the query, from 1."""
    column: int
    """The column in characters, from 1."""


class ErrorBody(BaseModel):
    """The body of every error response."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        json_schema_extra={
            "examples": [
                {"error": {"code": "rate-limit", "reason": "200 requests a second are allowed", "limit": 200}}
            ]
        },
    )

    error: ErrorDetail
    """What is wrong."""


def _examples(*errors: dict[str, Any]) -> dict[str, Any]:
    """Error bodies as the examples of a response, by code."""
    return {"application/json": {"examples": {one["code"]: {"value": {"error": one}} for one in errors}}}


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "model": ErrorBody,
        "description": "The request is refused; the same request will be refused again.",
        "content": _examples(
            {
                "code": "syntax",
                "reason": "a name, `*`, `@` or `.` is expected after `[`",
                "position": {"offset": 10, "line": 1, "column": 11},
            },
            {"code": "no-token", "reason": "send a token: `Authorization: Bearer TOKEN`"},
            {"code": "unknown-subscription", "reason": "there is no subscription qlt"},
            {"code": "rate-limit", "reason": "200 requests a second are allowed", "limit": 200},
        ),
    },
    "5XX": {
        "model": ErrorBody,
        "description": "The service cannot do it now; try again later.",
        "content": _examples({"code": "busy", "reason": "too many requests wait"}),
    },
}
"""The error responses of every operation, for OpenAPI."""


def status_of(error: TamisError) -> int:
    """The status code of an error."""
    if isinstance(error, QueryError):
        return 422
    return STATUS.get(error.code) or (422 if isinstance(error, PositionedError | DataError) else 500)


def error_response(error: TamisError) -> JSONResponse:
    """The response for an error."""
    status = status_of(error)
    headers: dict[str, str] = {}
    if status in (429, 503):
        seconds = error.retry_after if isinstance(error, ServiceError) else None
        headers["Retry-After"] = str(seconds or RETRY_SECONDS)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _json_response(status, detail_of(error), headers)


def detail_of(error: TamisError) -> ErrorDetail:
    """The JSON form of an error."""
    detail = ErrorDetail(code=error.code, reason=error.reason)
    if isinstance(error, PositionedError):
        detail.position = Position(offset=error.offset, line=error.line, column=error.column)
    if isinstance(error, PositionedError | ServiceError):
        detail.value, detail.limit = error.value, error.limit
    return detail


def as_http_exception(error: ServiceError) -> HTTPException:
    """An error to raise while FastAPI reads a body: it passes on only HTTP exceptions."""
    return _ServiceHTTPException(error)


class _ServiceHTTPException(HTTPException):
    def __init__(self, error: ServiceError) -> None:
        super().__init__(status_of(error), error.reason)
        self.error = error


def bad_request(errors: Sequence[Mapping[str, Any]], place: str = "") -> ServiceError:
    """The error for a body or a parameter that pydantic refuses, without pydantic's own words."""
    first = errors[0]
    names = [str(part) for part in first["loc"] if isinstance(part, int) or _FIELD.fullmatch(part)]
    if first["type"] == "json_invalid":
        names, text = [], f"the body is not JSON: {first.get('ctx', {}).get('error', first['msg'])}"
    elif first["type"] == "string_pattern_mismatch":
        text = "must not have control characters"
    else:
        text = first["msg"].removeprefix("Value error, ")
    return ServiceError("bad-request", ": ".join(part for part in (place, ".".join(names), text) if part))


def install(app: FastAPI) -> None:
    """Register handlers for all errors of an application."""

    @app.exception_handler(TamisError)
    async def ours(request: Request, error: TamisError) -> JSONResponse:
        if status_of(error) >= 500:
            log.error("%s", error, exc_info=error if status_of(error) == 500 else None)
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        first = error.errors()[0]
        if first["loc"][0] == "body" and first["type"] != "missing" and kind != "application/json":
            reason = f"{kind or 'no Content-Type'}: the body must be sent as application/json"
            return error_response(ServiceError("media-type", reason))
        return error_response(bad_request(error.errors()))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error, _ServiceHTTPException):
            return error_response(error.error)
        status = HTTPStatus(error.status_code)
        code = {400: "bad-request"}.get(status.value) or status.phrase.lower().replace(" ", "-")
        return _json_response(
            status.value, ErrorDetail(code=code, reason=str(error.detail)), dict(error.headers or {})
        )

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        reason = "internal error; see the log of the service, under the request id"
        return _json_response(500, ErrorDetail(code="internal", reason=reason), {})


def _json_response(status: int, detail: ErrorDetail, headers: Mapping[str, str]) -> JSONResponse:
    body = ErrorBody(error=detail).model_dump(exclude_none=True)
    return JSONResponse(body, status_code=status, headers=headers)
