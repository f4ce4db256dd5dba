"""Structured logs: JSON lines, one for each request and each log record."""

import json
import logging
import sys
import time
import uuid
from datetime import UTC, datetime

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.service.metrics import ServiceMetrics

log = logging.getLogger("tamis.requests")

HEADER = "x-request-id"

_FIELDS = ("request", "method", "path", "status", "seconds", "token")


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON. Headers and bodies are never logged: they may hold secrets."""

    def format(self, record: logging.LogRecord) -> str:
        value = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        value |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            value["trace"] = self.formatException(record.exc_info)
        return json.dumps(value, ensure_ascii=False)


def log_as_json() -> None:
    """Log to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class RequestLog:
    """Middleware: gives each request an id, which the response has too, and logs and counts it."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id, started, status = uuid.uuid4().hex[:16], time.monotonic(), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            seconds = time.monotonic() - started
            route = scope.get("route")
            self._metrics.count_request(scope["method"], getattr(route, "path", ""), status, seconds)
            caller = scope.get("state", {}).get("caller")
            fields = {
                "request": id,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "seconds": round(seconds, 4),
                "token": None if caller is None else caller.token.id,
            }
            log.info("%s %s", scope["method"], scope["path"], extra=fields)
