"""A parcel: what crosses a link at once, as a value and as bytes.

    {"format": 1, "epoch": "…", "number": 7, "kind": "messages", "key": "…", "hash": "…", "size": 4711}
    …body…

The hash is that of kind, key and body: a parcel that is sent again in another log keeps it.
"""

import json
import time
import uuid
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal, TypeAlias, get_args

from tamis.errors import TamisError
from tamis.storage.failures import StorageErrors

FORMAT = 1
"""The version of the format of parcels and of a log's head."""

Kind: TypeAlias = Literal["messages", "interest", "acknowledgements", "topology"]


class LinkError(TamisError):
    """A link that stops, or a log that cannot be read or written."""


LINK_ERRORS = StorageErrors(LinkError, "link", "is it there, may we write to it, and is there room?")


@dataclass(frozen=True, slots=True)
class Position:
    """What a receiver has stored last: a parcel of a log, by its number and its hash."""

    epoch: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Parcel:
    """A parcel of a log."""

    epoch: str
    """The log."""
    number: int
    """From 1, without gaps."""
    kind: Kind
    key: str
    """What it is made from: a log has one parcel for a key. `STREAM:REST`; streams are few."""
    hash: str
    body: bytes

    @property
    def position(self) -> Position:
        return Position(self.epoch, self.number, self.hash)

    @property
    def stream(self) -> str:
        """Of each stream the last key is remembered when its parcel is deleted: it may be published again."""
        return self.key.partition(":")[0]

    def encode(self) -> bytes:
        head = {"format": FORMAT, "epoch": self.epoch, "number": self.number, "kind": self.kind}
        rest = {"key": self.key, "hash": self.hash, "size": len(self.body)}
        return json.dumps(head | rest).encode() + b"\n" + self.body

    @staticmethod
    def decode_header(line: bytes, place: str) -> "tuple[Parcel, int]":
        """The parcel of a header, without its body, and the size of that; `place` names it in errors."""
        return _header(line, place)

    @staticmethod
    def decode(data: bytes, place: str) -> "Parcel":
        """A parcel, checked."""
        line, _, body = data.partition(b"\n")
        parcel, size = _header(line, place)
        if size != len(body) or parcel.hash != content_hash(parcel.kind, parcel.key, body):
            raise _damaged(place)
        return replace(parcel, body=body)


def _header(line: bytes, place: str) -> tuple[Parcel, int]:
    """A parcel without its body, and the size of the body."""
    try:
        head = json.loads(line)
        format, kind, size = head["format"], head["kind"], head["size"]
        if not isinstance(format, int) or not isinstance(size, int):
            raise _damaged(place)
        if format > FORMAT:
            reason = f"{place} has format {format}, and {FORMAT} is known: use a newer tamis"
            raise LinkError("newer-format", reason)
        if kind not in get_args(Kind):
            raise LinkError("newer-format", f"{place} is of kind {kind!r}: use a newer tamis")
        return Parcel(head["epoch"], head["number"], kind, head["key"], head["hash"], b""), size
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(place) from error


def _damaged(place: str) -> LinkError:
    reason = f"{place} is not what was sent; restore it, or have its sender begin a new log"
    return LinkError("damaged-parcel", reason)


def content_hash(kind: str, key: str, body: bytes) -> str:
    """The hash of a parcel."""
    digest = blake2b(digest_size=16)
    for part in (kind.encode(), key.encode(), body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def new_epoch() -> str:
    """The name of a new log. Names are ordered by time: the later of two logs is the new one."""
    return f"{time.time_ns() // 1000:017}-{uuid.uuid4().hex[:8]}"
