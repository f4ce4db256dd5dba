"""What two neighbours tell each other about their tables of routes, as values and as the body of a parcel.

    A → B  Hello        which version of B's table A has; B answers with what is missing
    B → A  TableChange  a change of what B wants, or all of it
    A → B  InForce      since which version of B's table each broker beyond A sends B what it wants
    A → B  Pressure     whether what B sends may wait: the log of a link behind A is full

A `TableChange` has the nonce of the `Hello` that it answers: a parcel that is read again after a restart, or
in a restored copy, is not taken for an answer.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tamis.network.parcel import LinkError
from tamis.network.tables import TableVersion, TenantRow

FORMAT = 1
"""The version of the format of notices."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Which version of the receiver's table the sender has."""

    nonce: str
    """Random; the sender believes answers with it only."""
    have: TableVersion | None
    ask: bool
    """Whether the receiver shall say hello too: the sender does not know what it has."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """A change of what the sender wants; its additions and removals apply together."""

    nonce: str
    since: TableVersion | None
    """The version that it starts from; None: these rows are all."""
    version: TableVersion
    added: frozenset[TenantRow]
    removed: frozenset[TenantRow]


@dataclass(frozen=True, slots=True)
class InForce:
    """By broker: what enters there is routed by this count of the receiver's table, or a later one."""

    mark: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Pressure:
    """Whether the log of a link is full, of the sender or behind it: then roots stop accepting."""

    is_full: bool


Notice: TypeAlias = Hello | TableChange | InForce | Pressure


def encode(notice: Notice) -> bytes:
    """The body of a parcel."""
    value: dict[str, Any]
    match notice:
        case Hello(nonce, have, ask):
            value = {"notice": "hello", "nonce": nonce, "have": _version(have), "ask": ask}
        case TableChange(nonce, since, version, added, removed):
            value = {
                "notice": "table",
                "nonce": nonce,
                "since": _version(since),
                "version": _version(version),
            }
            value |= {"added": _rows(added), "removed": _rows(removed)}
        case InForce(mark, counts):
            value = {"notice": "in-force", "mark": mark, "counts": dict(counts)}
        case Pressure(is_full):
            value = {"notice": "pressure", "full": is_full}
    return zlib.compress(json.dumps({"format": FORMAT} | value, sort_keys=True).encode())


def decode(body: bytes, place: str) -> Notice:
    """The notice of a parcel; `place` names it in errors."""
    try:
        value = json.loads(zlib.decompress(body))
        if value["format"] > FORMAT:
            raise LinkError("newer-format", f"{place} has a newer format of notices: use a newer tamis")
        match value["notice"]:
            case "hello":
                return Hello(value["nonce"], _read_version(value["have"]), value["ask"])
            case "table":
                since, version = _read_version(value["since"]), _read_version(value["version"])
                if version is not None:
                    added, removed = _read_rows(value["added"]), _read_rows(value["removed"])
                    return TableChange(value["nonce"], since, version, added, removed)
            case "in-force":
                return InForce(value["mark"], {str(name): int(at) for name, at in value["counts"].items()})
            case "pressure":
                return Pressure(bool(value["full"]))
        raise LinkError("newer-format", f"{place} has an unknown notice: use a newer tamis")
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise LinkError("damaged-notice", f"{place} is no notice: {error!r}") from error


def _version(version: TableVersion | None) -> list[Any] | None:
    return None if version is None else [version.count, version.mark, version.hash]


def _read_version(value: Any) -> TableVersion | None:
    if value is None:
        return None
    count, mark, hash = value
    return TableVersion(int(count), str(mark), str(hash))


def _rows(rows: Iterable[TenantRow]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tenant, text in sorted(rows):
        found.setdefault(tenant, []).append(text)
    return found


def _read_rows(value: Mapping[str, list[str]]) -> frozenset[TenantRow]:
    return frozenset((str(tenant), str(text)) for tenant, texts in value.items() for text in texts)
