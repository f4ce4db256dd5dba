"""The operations of both clients as values (request and response reader), and their retry policy."""

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from tamis.errors import TamisError
from tamis.model.backoff import Backoff
from tamis.model.signatures import new_secret

T = TypeVar("T")

Json = dict[str, Any]
"""An object of a response; `/openapi.json` describes it."""

RETRY_SECONDS = 30.0
"""Seconds for which a client retries a call that fails temporarily."""

FIRST_DELAY, MAX_DELAY = 0.2, 5.0
"""Seconds before a retry: exponential backoff, unless the response has Retry-After."""

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Streams have a heartbeat every 15 seconds."""


class ClientError(TamisError):
    """The service refused a call, or cannot be reached."""

    def __init__(self, code: str, reason: str, status: int | None = None, detail: Json | None = None) -> None:
        super().__init__(code, reason)
        self.status = status
        """The HTTP status; None if there was no response."""
        self.detail = detail or {}
        """The whole error: also `position`, `value` and `limit`."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message for a subscription, in the form that its query asks for."""

    cursor: int
    id: str
    subscription: str
    revision: int
    message: str
    source: str
    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of the message."""

    @classmethod
    def of(cls, fields: Json) -> "Delivery":
        text, encoded = fields.get("payload"), fields.get("base64")
        payload = base64.b64decode(encoded or "") if text is None else text.encode()
        names = ("cursor", "id", "subscription", "revision", "message", "source")
        headers = fields.get("headers") or {}
        return cls(**{name: fields[name] for name in names}, payload=payload, headers=headers)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how to read its response."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        params = {name: value for name, value in self.params.items() if value is not None}
        return http.build_request(
            self.method,
            self.path,
            params=params,
            headers=dict(self.headers),
            content=self.content,
            json=self.json,
        )


class Retry:
    """The retry policy of one call, with exponential backoff. All calls are idempotent."""

    def __init__(self) -> None:
        self._end = time.monotonic() + RETRY_SECONDS
        self._backoff = Backoff(FIRST_DELAY, MAX_DELAY)

    def delay(self, outcome: httpx.Response | httpx.TransportError) -> float | None:
        """Seconds before the next attempt; None: use the response. `ClientError` when it gives up."""
        given = None
        if isinstance(outcome, httpx.Response):
            if outcome.status_code not in (429, 503):
                return None
            given = outcome.headers.get("retry-after", "")
        delay = self._backoff.next()
        if given and given.isdecimal():
            delay = min(float(given), MAX_DELAY)
        if time.monotonic() + delay < self._end:
            return delay
        if isinstance(outcome, httpx.Response):
            return None
        raise unreachable(outcome) from outcome


def unreachable(error: httpx.TransportError) -> ClientError:
    return ClientError("unreachable", f"the service does not answer: {error or type(error).__name__}")


def success(response: httpx.Response) -> httpx.Response:
    """A successful response; `ClientError` for any other."""
    if response.is_success:
        return response
    try:
        detail = response.json()["error"]
        code, reason = detail["code"], detail["reason"]
    except (ValueError, KeyError, TypeError):
        detail, code, reason = {}, "no-service", f"answered with {response.status_code}: is this the service?"
    raise ClientError(code, reason, response.status_code, detail)


class EventReader:
    """Lines of an event stream → deliveries."""

    def __init__(self) -> None:
        self._data: list[str] = []

    def read(self, line: str) -> Delivery | None:
        """The delivery that a line completes, if any."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line and self._data:
            text, self._data = "\n".join(self._data), []
            return Delivery.of(json.loads(text))
        return None


def _object(response: httpx.Response) -> Json:
    value: Json = response.json()
    return value


def _nothing(response: httpx.Response) -> None:
    return None


def _without_none(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _timestamp(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _subscription(id: str) -> str:
    return f"/v1/subscriptions/{quote(id)}"


def _data(name: str) -> str:
    return f"/v1/data/{quote(name, safe='')}"


def _webhook(name: str) -> str:
    return f"/v1/webhooks/{quote(name, safe='')}"


# The operations, one function each.


def data_sets() -> Call[Json]:
    return Call("GET", "/v1/data", _object)


def data_set(name: str) -> Call[Json]:
    return Call("GET", _data(name), _object)


def records(name: str, start: int, limit: int) -> Call[Json]:
    return Call("GET", f"{_data(name)}/records", _object, {"start": start, "limit": limit})


def put_data(name: str, content: bytes, media_type: str, **more: Any) -> Call[Json]:
    headers = {"content-type": media_type}
    return Call("PUT", _data(name), _object, more, content=content, headers=headers)


def change_data(name: str, content: bytes | None, media_type: str, **more: Any) -> Call[Json]:
    headers = {"content-type": media_type}
    return Call("POST", f"{_data(name)}/changes", _object, more, content=content, headers=headers)


def revert_data(name: str, version: int | None) -> Call[Json]:
    return Call("POST", f"{_data(name)}/revert", _object, json={"version": version})


def remove_data(name: str) -> Call[None]:
    return Call("DELETE", _data(name), _nothing)


def subscribe(query: str, **more: Any) -> Call[Json]:
    # The id makes a retry idempotent.
    body = _without_none(query=query, **{**more, "id": more.get("id") or uuid.uuid4().hex})
    return Call("POST", "/v1/subscriptions", _object, json=body)


def subscriptions(**filters: Any) -> Call[Json]:
    return Call("GET", "/v1/subscriptions", _object, params=filters)


def subscription(id: str) -> Call[Json]:
    return Call("GET", _subscription(id), _object)


def change(id: str, **changed: Any) -> Call[Json]:
    return Call("PATCH", _subscription(id), _object, json=_without_none(**changed))


def unsubscribe(id: str) -> Call[None]:
    return Call("DELETE", _subscription(id), _nothing)


def import_subscriptions(lines: Iterable[str]) -> Call[Json]:
    content = "".join(f"{line}\n" for line in lines).encode()
    return Call("POST", "/v1/subscriptions.jsonl", _object, content=content)


def export_subscriptions() -> Call[list[str]]:
    return Call("GET", "/v1/subscriptions.jsonl", lambda response: response.text.split("\n")[:-1])


def publish(
    messages: Iterable[tuple[str | None, str | bytes]],
    source: str | None,
    headers: Mapping[str, str] | None,
) -> Call[list[str]]:
    """Messages without an id get one, so that a retry is idempotent."""
    more = {"headers": dict(headers)} if headers else {}
    many = [{"id": id or uuid.uuid4().hex, **_content(xml), **more} for id, xml in messages]
    return Call(
        "POST",
        "/v1/messages",
        lambda response: [one["id"] for one in response.json()["messages"]],
        params={"source": source},
        json=many,
    )


def match(xml: str | bytes, **more: Any) -> Call[Json]:
    return Call("POST", "/v1/match", _object, json=_without_none(**_content(xml), **more))


def deliveries(**filters: Any) -> Call[list[Delivery]]:
    def read(response: httpx.Response) -> list[Delivery]:
        return [Delivery.of(one) for one in response.json()["deliveries"]]

    return Call("GET", "/v1/deliveries", read, params=filters)


def events(after: int, subscriber: str | None) -> Call[None]:
    params = {"after": after, "subscriber": subscriber}
    return Call("GET", "/v1/deliveries/events", _nothing, params=params)


def acknowledge(ids: Iterable[str], until: int | None, subscriber: str | None) -> Call[int]:
    body = _without_none(ids=list(ids), until=until, subscriber=subscriber)
    return Call(
        "POST", "/v1/deliveries/ack", lambda response: int(response.json()["acknowledged"]), json=body
    )


def webhooks() -> Call[list[Json]]:
    return Call("GET", "/v1/webhooks", lambda response: list(response.json()["webhooks"]))


def add_webhook(name: str, url: str, subscriber: str | None) -> Call[Json]:
    # The secret makes a retry idempotent, here and below.
    body = _without_none(name=name, url=url, subscriber=subscriber, secret=new_secret())
    return Call("POST", "/v1/webhooks", _object, json=body)


def change_webhook(name: str, **changed: Any) -> Call[Json]:
    return Call("PATCH", _webhook(name), _object, json=_without_none(**changed))


def rotate_webhook(name: str, overlap: int | None) -> Call[Json]:
    body = _without_none(secret=new_secret(), overlap=overlap)
    return Call("POST", f"{_webhook(name)}/rotate", _object, json=body)


def test_webhook(name: str) -> Call[Json]:
    return Call("POST", f"{_webhook(name)}/test", _object)


def remove_webhook(name: str) -> Call[None]:
    return Call("DELETE", _webhook(name), _nothing)


def dead_letters(since: datetime | None, **filters: Any) -> Call[list[Json]]:
    filters["since"] = _timestamp(since)
    return Call("GET", "/v1/dead-letters", lambda response: list(response.json()["letters"]), params=filters)


def dead_letter(key: str) -> Call[Json]:
    return Call("GET", f"/v1/dead-letters/{quote(key)}", _object)


def replay(since: datetime | None, **filters: Any) -> Call[Json]:
    body = _without_none(since=_timestamp(since), **filters)
    return Call("POST", "/v1/dead-letters/replay", _object, json=body)


def status() -> Call[Json]:
    return Call("GET", "/v1/status", _object)


def _content(xml: str | bytes) -> Json:
    return {"xml": xml} if isinstance(xml, str) else {"base64": base64.b64encode(xml).decode()}
