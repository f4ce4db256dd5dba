"""Subscriptions and prefix maps as JSON lines: what import reads and export writes."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tamis.model.subscription import NewSubscription, PrefixMap, Refusal, State, Subscription

Line = NewSubscription | PrefixMap | Refusal
"""A parsed line, or why it is refused."""

_SUBSCRIPTION = {"id", "tenant", "subscriber", "query", "namespaces", "delivery_target", "state"}
_PREFIX_MAP = {"prefix_map", "tenant", "prefixes"}


def read(lines: Iterable[bytes | str]) -> Iterator[tuple[int, Line]]:
    """The lines with their numbers, from 1; empty ones are left out."""
    for place, line in enumerate(lines, start=1):
        if line.strip():
            yield place, _read(place, line)


def _read(place: int, line: bytes | str) -> Line:
    try:
        value = json.loads(line.removeprefix(b"\xef\xbb\xbf") if isinstance(line, bytes) else line)
    except json.JSONDecodeError as error:
        return Refusal(place, "bad-json", error.msg, error.colno)
    except UnicodeDecodeError as error:
        return Refusal(place, "bad-encoding", "the line is not UTF-8", error.start + 1)
    except RecursionError:
        return Refusal(place, "bad-json", "the line is nested too deeply")
    try:
        return _map(value) if isinstance(value, dict) and "prefix_map" in value else _subscription(value)
    except _LineError as error:
        return Refusal(place, "bad-line", str(error))


def _subscription(value: Any) -> NewSubscription:
    fields = _fields(value, _SUBSCRIPTION, ("subscriber", "query"))
    namespaces = fields.pop("namespaces", {})
    if not isinstance(namespaces, str):
        namespaces = _prefixes(namespaces, "namespaces")
    state = fields.pop("state", None)
    if state is not None and state not in set(State):
        raise _LineError(f"`state` is one of {', '.join(State)}")
    for name in fields:
        _string(fields, name)
    return NewSubscription(**fields, namespaces=namespaces, state=None if state is None else State(state))


def _map(value: Any) -> PrefixMap:
    fields = _fields(value, _PREFIX_MAP, ("prefix_map", "prefixes"))
    prefixes = _prefixes(fields["prefixes"], "prefixes")
    tenant = _string(fields, "tenant") if "tenant" in fields else ""
    return PrefixMap(_string(fields, "prefix_map"), prefixes, tenant)


def _fields(value: Any, known: set[str], needed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _LineError("a line is an object: {…}")
    for name in needed:
        if name not in value:
            raise _LineError(f"`{name}` is missing")
    for name in value:
        if name not in known:
            raise _LineError(f"`{name}` is unknown; the fields are {', '.join(sorted(known))}")
    return value


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise _LineError(f"`{name}` must be a string")
    return value


def _prefixes(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(uri, str) for uri in value.values()):
        raise _LineError(f'`{name}` has the form {{"prefix": "uri"}}')
    return value


class _LineError(ValueError):
    """A line of valid JSON that is no subscription and no prefix map."""


def write(item: Subscription | PrefixMap) -> str:
    """The line of a subscription or prefix map; `read` gives the same value."""
    value: dict[str, Any]
    if isinstance(item, PrefixMap):
        value = {"prefix_map": item.name, "tenant": item.tenant, "prefixes": dict(item.prefixes)}
    else:
        namespaces = item.namespaces if isinstance(item.namespaces, str) else dict(item.namespaces)
        value = {
            "id": item.id,
            "tenant": item.tenant,
            "subscriber": item.subscriber,
            "query": item.query,
            "namespaces": namespaces,
            "delivery_target": item.delivery_target,
            "state": item.state.value,
        }
        if not namespaces:
            del value["namespaces"]
    return json.dumps(value, ensure_ascii=False)
