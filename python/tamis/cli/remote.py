"""A remote service with the same methods as the local catalog, for the command line."""

import argparse
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tamis.errors import QueryError, TamisError
from tamis.model.matching import QueryWarning
from tamis.model.subscription import (
    Established,
    Imported,
    LineWarning,
    Namespaces,
    NewSubscription,
    PrefixMap,
    Refusal,
    State,
    Subscription,
)
from tamis.model.subscription_lines import Line

if TYPE_CHECKING:
    from tamis.client import Client

URL, TOKEN = "TAMIS_URL", "TAMIS_TOKEN"
"""Environment variables with the URL of the service and the token."""

IMPORTED = 1_000
"""Lines per import request: the service reports at most this many refusals."""


class RemoteError(TamisError):
    """A service that cannot be used this way."""


def add_url(command: argparse._ActionsContainer) -> None:
    """The flag for the URL of a service."""
    command.add_argument("--url", help=f"of a service, or {URL}; {TOKEN} is the token for it")


def url_of(options: argparse.Namespace) -> str | None:
    """The URL of the service; None for the local catalog."""
    url: str | None = options.url or os.environ.get(URL)
    return url


def client_of(options: argparse.Namespace) -> "Client":
    """A client of the service."""
    # Slow to import; local commands do not need it.
    from tamis.client import Client

    url, token = url_of(options), os.environ.get(TOKEN)
    if url is None:
        raise RemoteError("no-url", f"name a service: --url, or {URL}")
    if token is None:
        # Not a flag: every user of the machine can read command lines.
        raise RemoteError("no-token", f"{TOKEN} must contain a token; create one with `tamis tokens create`")
    return Client(url, token)


class OfService:
    """A service and its client, closed together. The token decides the tenant."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()


class RemoteCatalog(OfService):
    """The subscriptions of a service."""

    def add(self, asked: NewSubscription) -> Subscription:
        with _positioned():
            created = self._client.subscribe(
                asked.query,
                id=asked.id,
                subscriber=asked.subscriber,
                namespaces=asked.namespaces or None,
                delivery_target=asked.delivery_target,
            )
        return _subscription(created)

    def change(
        self,
        id: str,
        *,
        tenant: str = "",
        subscriber: str | None = None,
        query: str | None = None,
        namespaces: Namespaces | None = None,
        delivery_target: str | None = None,
    ) -> Subscription:
        changed = {
            "subscriber": subscriber,
            "query": query,
            "namespaces": namespaces,
            "delivery_target": delivery_target,
        }
        with _positioned():
            return _subscription(self._client.change(id, **changed))

    def get(self, id: str, *, tenant: str = "") -> Subscription:
        return _subscription(self._client.subscription(id))

    def established(self, one: Subscription) -> Established | None:
        """Where it is established; None if the service is not part of a network."""
        return self.get(one.id).established

    def pause(self, id: str, *, tenant: str = "") -> Subscription:
        return _subscription(self._client.pause(id))

    def resume(self, id: str, *, tenant: str = "") -> Subscription:
        return _subscription(self._client.resume(id))

    def remove(self, id: str, *, tenant: str = "") -> bool:
        """False if there is none."""
        from tamis.client import ClientError

        try:
            self._client.subscription(id)
        except ClientError as error:
            if error.status == 404:
                return False
            raise
        self._client.unsubscribe(id)
        return True

    def list(
        self,
        *,
        tenant: str | None = None,
        subscriber: str | None = None,
        state: State | None = None,
        text: str | None = None,
        limit: int = 100,
    ) -> Sequence[Subscription]:
        found = self._client.subscriptions(subscriber=subscriber, state=state, text=text)
        return [_subscription(one) for one in islice(found, limit)]

    def import_(self, given: Iterable[tuple[int, Line]], refused: Callable[[Refusal], None]) -> Imported:
        """Import in chunks. Each line gets an id, so that a retry is idempotent."""
        total = Imported()
        remaining = iter(given)
        while some := list(islice(remaining, IMPORTED)):
            own = [line for _, line in some if isinstance(line, Refusal)]
            sent = [(place, line) for place, line in some if not isinstance(line, Refusal)]
            answer = self._client.import_subscriptions([_line(line) for _, line in sent])
            theirs = [
                Refusal(sent[one["line"] - 1][0], one["code"], one["reason"], one["column"])
                for one in answer["refusals"]
            ]
            for refusal in sorted([*own, *theirs], key=lambda one: one.place):
                refused(refusal)
            total = Imported(
                total.added + answer["added"],
                total.changed + answer["changed"],
                total.unchanged + answer["unchanged"],
                total.refused + answer["refused"] + len(own),
                total.warned + answer["warned"],
                total.warnings
                + tuple(
                    LineWarning(sent[one["line"] - 1][0], one["code"], one["reason"], one["column"])
                    for one in answer["warnings"]
                ),
            )
        return total

    def export(self, *, tenant: str | None = None) -> Iterator[Subscription | PrefixMap]:
        for line in self._client.export_subscriptions():
            value = json.loads(line)
            if "prefix_map" in value:
                yield PrefixMap(value["prefix_map"], value["prefixes"], value["tenant"])
            else:
                # Only the fields of an export line.
                yield _subscription({"revision": 0, "created": NEVER, "changed": NEVER, **value})


NEVER = datetime.min.isoformat()


def _subscription(answer: dict[str, Any]) -> Subscription:
    """A subscription from the service's JSON, without number and tenant."""
    return Subscription(
        id=answer["id"],
        revision=answer["revision"],
        number=0,
        tenant=answer.get("tenant", ""),
        subscriber=answer["subscriber"],
        query=answer["query"],
        namespaces=answer.get("namespaces", {}),
        delivery_target=answer["delivery_target"],
        state=State(answer["state"]),
        created=datetime.fromisoformat(answer["created"]),
        changed=datetime.fromisoformat(answer["changed"]),
        warnings=tuple(QueryWarning(**warning) for warning in answer.get("warnings", ())),
        established=_established(answer.get("established")),
    )


def _established(answer: dict[str, Any] | None) -> Established | None:
    if answer is None:
        return None
    return Established(tuple(answer["brokers"]), tuple(answer["missing"]))


def _line(item: NewSubscription | PrefixMap) -> str:
    value: dict[str, Any]
    if isinstance(item, PrefixMap):
        value = {"prefix_map": item.name, "tenant": item.tenant, "prefixes": dict(item.prefixes)}
    else:
        namespaces = item.namespaces if isinstance(item.namespaces, str) else dict(item.namespaces)
        value = {
            "id": item.id or uuid.uuid4().hex,
            "tenant": item.tenant,
            "subscriber": item.subscriber,
            "query": item.query,
            "namespaces": namespaces,
            "delivery_target": item.delivery_target,
        }
        if item.state is not None:
            value["state"] = item.state.value
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def _positioned() -> Iterator[None]:
    """Raise refused queries as `QueryError`, with the position."""
    from tamis.client import ClientError

    try:
        yield
    except ClientError as error:
        at = error.detail.get("position")
        if at is None:
            raise
        raise QueryError(error.code, error.reason, at["offset"], at["line"], at["column"]) from error
