"""What clients say and how they take the answers: the same for both, which only wait in different ways."""

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
"""An object as the service tells it: `/openapi.json` describes each."""

PATIENCE = 30.0
"""Seconds for which a client tries again what the service cannot do at the moment."""

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds before the next try; each time twice as many, unless the service names them."""

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Streams say every 15 seconds that they are there."""


class ClientError(TamisError):
    """What the service refuses, or that it cannot be reached."""

    def __init__(self, code: str, reason: str, status: int | None = None, detail: Json | None = None) -> None:
        super().__init__(code, reason)
        self.status = status
        """Of HTTP; None if there was no answer."""
        self.detail = detail or {}
        """All that was told: also `position`, `value` and `limit`."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message, in the form that a subscription asks for."""

    cursor: int
    id: str
    subscription: str
    revision: int
    message: str
    source: str
    payload: bytes

    @classmethod
    def of(cls, told: Json) -> "Delivery":
        text, encoded = told.get("payload"), told.get("base64")
        payload = base64.b64decode(encoded or "") if text is None else text.encode()
        names = ("cursor", "id", "subscription", "revision", "message", "source")
        return cls(**{name: told[name] for name in names}, payload=payload)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and what its answer is taken for."""

    method: str
    path: str
    take: Callable[[httpx.Response], T]
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


class Patience:
    """How long to go on trying. All calls can be repeated: they come to the same when they are."""

    def __init__(self) -> None:
        self._end = time.monotonic() + PATIENCE
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)

    def after(self, outcome: httpx.Response | httpx.TransportError) -> float | None:
        """Seconds to wait before the next try; None: take the answer. `ClientError` if it is no use."""
        given = None
        if isinstance(outcome, httpx.Response):
            if outcome.status_code not in (429, 503):
                return None
            given = outcome.headers.get("retry-after", "")
        pause = self._backoff.next()
        if given and given.isdecimal():
            pause = min(float(given), LONGEST_PAUSE)
        if time.monotonic() + pause < self._end:
            return pause
        if isinstance(outcome, httpx.Response):
            return None
        raise unreachable(outcome) from outcome


def unreachable(error: httpx.TransportError) -> ClientError:
    return ClientError("unreachable", f"the service does not answer: {error or type(error).__name__}")


def checked(response: httpx.Response) -> httpx.Response:
    """A good answer; `ClientError` for another."""
    if response.is_success:
        return response
    try:
        told = response.json()["error"]
        code, reason = told["code"], told["reason"]
    except (ValueError, KeyError, TypeError):
        told, code, reason = {}, "no-service", f"answered with {response.status_code}: is this the service?"
    raise ClientError(code, reason, response.status_code, told)


class EventReader:
    """The lines of an event stream → deliveries."""

    def __init__(self) -> None:
        self._data: list[str] = []

    def take(self, line: str) -> Delivery | None:
        """The delivery that a line completes."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line and self._data:
            text, self._data = "\n".join(self._data), []
            return Delivery.of(json.loads(text))
        return None


def _object(response: httpx.Response) -> Json:
    told: Json = response.json()
    return told


def _nothing(response: httpx.Response) -> None:
    return None


def _given(**values: Any) -> Json:
    """What is not None."""
    return {name: value for name, value in values.items() if value is not None}


def _told(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _place(id: str) -> str:
    return f"/v1/subscriptions/{quote(id)}"


def _webhook(name: str) -> str:
    return f"/v1/webhooks/{quote(name, safe='')}"


# The verbs, one function each.


def subscribe(query: str, **more: Any) -> Call[Json]:
    # With an id of our own, to ask twice is to subscribe once.
    asked = _given(query=query, **{**more, "id": more.get("id") or uuid.uuid4().hex})
    return Call("POST", "/v1/subscriptions", _object, json=asked)


def subscriptions(**wanted: Any) -> Call[Json]:
    return Call("GET", "/v1/subscriptions", _object, params=wanted)


def subscription(id: str) -> Call[Json]:
    return Call("GET", _place(id), _object)


def change(id: str, **changed: Any) -> Call[Json]:
    return Call("PATCH", _place(id), _object, json=_given(**changed))


def unsubscribe(id: str) -> Call[None]:
    return Call("DELETE", _place(id), _nothing)


def import_subscriptions(lines: Iterable[str]) -> Call[Json]:
    content = "".join(f"{line}\n" for line in lines).encode()
    return Call("POST", "/v1/subscriptions.jsonl", _object, content=content)


def export_subscriptions() -> Call[list[str]]:
    return Call("GET", "/v1/subscriptions.jsonl", lambda response: response.text.split("\n")[:-1])


def publish(messages: Iterable[tuple[str | None, str | bytes]], source: str | None) -> Call[list[str]]:
    """With ids of our own where none are given, so that trying again publishes once."""
    many = [{"id": id or uuid.uuid4().hex, **_content(xml)} for id, xml in messages]
    return Call(
        "POST",
        "/v1/messages",
        lambda response: [one["id"] for one in response.json()["messages"]],
        params={"source": source},
        json=many,
    )


def match(xml: str | bytes, **more: Any) -> Call[Json]:
    return Call("POST", "/v1/match", _object, json=_given(**_content(xml), **more))


def deliveries(**wanted: Any) -> Call[list[Delivery]]:
    def take(response: httpx.Response) -> list[Delivery]:
        return [Delivery.of(one) for one in response.json()["deliveries"]]

    return Call("GET", "/v1/deliveries", take, params=wanted)


def events(after: int, subscriber: str | None) -> Call[None]:
    params = {"after": after, "subscriber": subscriber}
    return Call("GET", "/v1/deliveries/events", _nothing, params=params)


def acknowledge(ids: Iterable[str], until: int | None, subscriber: str | None) -> Call[int]:
    asked = _given(ids=list(ids), until=until, subscriber=subscriber)
    return Call(
        "POST", "/v1/deliveries/ack", lambda response: int(response.json()["acknowledged"]), json=asked
    )


def webhooks() -> Call[list[Json]]:
    return Call("GET", "/v1/webhooks", lambda response: list(response.json()["webhooks"]))


def add_webhook(name: str, url: str, subscriber: str | None) -> Call[Json]:
    # With a secret of our own, to ask twice is to ask once; so too below.
    asked = _given(name=name, url=url, subscriber=subscriber, secret=new_secret())
    return Call("POST", "/v1/webhooks", _object, json=asked)


def change_webhook(name: str, **changed: Any) -> Call[Json]:
    return Call("PATCH", _webhook(name), _object, json=_given(**changed))


def rotate_webhook(name: str, overlap: int | None) -> Call[Json]:
    asked = _given(secret=new_secret(), overlap=overlap)
    return Call("POST", f"{_webhook(name)}/rotate", _object, json=asked)


def test_webhook(name: str) -> Call[Json]:
    return Call("POST", f"{_webhook(name)}/test", _object)


def remove_webhook(name: str) -> Call[None]:
    return Call("DELETE", _webhook(name), _nothing)


def dead_letters(since: datetime | None, **wanted: Any) -> Call[list[Json]]:
    wanted["since"] = _told(since)
    return Call("GET", "/v1/dead-letters", lambda response: list(response.json()["letters"]), params=wanted)


def dead_letter(key: str) -> Call[Json]:
    return Call("GET", f"/v1/dead-letters/{quote(key)}", _object)


def replay(since: datetime | None, **wanted: Any) -> Call[Json]:
    asked = _given(since=_told(since), **wanted)
    return Call("POST", "/v1/dead-letters/replay", _object, json=asked)


def status() -> Call[Json]:
    return Call("GET", "/v1/status", _object)


def _content(xml: str | bytes) -> Json:
    return {"xml": xml} if isinstance(xml, str) else {"base64": base64.b64encode(xml).decode()}
