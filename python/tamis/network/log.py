"""The log of parcels that one end of a link sends, in a directory. One process writes it, others read it.

    head.json                             the current log, what it has deleted, and what is acknowledged
    <epoch>/000000000007.parcel           a parcel, which appears whole or not at all

Numbers have no gaps. A log has one parcel for a key: what is published again is known. A log *begins anew*,
under another epoch, when the receiver has stored a parcel that the log does not know: then the log is a
restored copy. It sends again what is not acknowledged; a receiver recognises it by its hash.

Cost: opening reads the header of each parcel that is kept; publishing writes one file, and
acknowledging one.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tamis.network.parcel import (
    FORMAT,
    LINK_ERRORS,
    Kind,
    LinkError,
    Parcel,
    Position,
    content_hash,
    new_epoch,
)
from tamis.storage.place import Place, place_at

HEAD = "head.json"

HEADER_BYTES = 1 << 16

KEEP = 3600.0
"""Seconds for which an acknowledged parcel is kept: a receiver restored from a copy may ask for it again."""


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a log besides its parcels."""

    epoch: str
    reason: str
    """Why it began."""
    earlier: tuple[str, ...] = ()
    """The logs before it."""
    acknowledged: int = 0
    first: int = 1
    """The first parcel that is not deleted."""
    deleted: int = 0
    """The last deleted parcel with messages or a topology: without it, something is missing."""
    last_keys: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    """By stream, the last deleted key with its number and hash."""

    def to_json(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode() + b"\n"

    @staticmethod
    def parse(text: bytes, place: str) -> "Head":
        try:
            value: dict[str, Any] = json.loads(text)
            format = value.pop("format")
            if format == FORMAT:
                keys = {
                    stream: (key, number, hash) for stream, (key, number, hash) in value["last_keys"].items()
                }
                return Head(**{**value, "earlier": tuple(value["earlier"]), "last_keys": keys})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LinkError("damaged-log", f"{place} cannot be read: {error!r}; restore it") from error
        raise LinkError(
            "newer-format", f"{place} has format {format}, and {FORMAT} is known: use a newer tamis"
        )


class UnknownPositionError(Exception):
    """The log does not know what its receiver has stored: the log was restored from a copy."""


class LinkLog:
    """The log as its one writer uses it. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._place = place_at(url, LINK_ERRORS)
        self._lock = threading.RLock()
        self._head: Head | None = None
        self._parcels: dict[int, Parcel] = {}
        """Those that are kept, without their bodies."""
        self._sizes: dict[int, int] = {}
        """The bytes of their bodies."""
        self._keys: dict[str, tuple[int, str]] = {}

    @property
    def head(self) -> Head:
        with self._lock:
            return self._open()

    @property
    def last(self) -> int:
        """The number of the last parcel; 0 if there is none."""
        with self._lock:
            return max(self._parcels, default=self._open().first - 1)

    def publish(self, kind: Kind, key: str, body: bytes) -> Position:
        """Append a parcel; its position. A key that was published before has its parcel already."""
        with self._lock:
            head = self._open()
            known = self._keys.get(key)
            if known is not None:
                return Position(head.epoch, *known)
            parcel = Parcel(head.epoch, self.last + 1, kind, key, content_hash(kind, key, body), body)
            self._write(parcel)
            return parcel.position

    def confirm(self, position: Position) -> bool:
        """The receiver has stored everything up to a position; false if the log does not know it.

        Then it has begun anew, and sends again what is not acknowledged.
        """
        with self._lock:
            head = self._open()
            number = position.number
            if position.epoch in head.earlier:
                return True
            if position.epoch == head.epoch and number < head.first:
                return True
            known = self._parcels.get(number) if position.epoch == head.epoch else None
            if known is None or known.hash != position.hash:
                self.begin("the receiver has stored a parcel that this log does not know", position.epoch)
                return False
            if number > head.acknowledged:
                self._put_head(replace(head, acknowledged=number))
            return True

    def begin(self, reason: str, after: str = "") -> None:
        """Begin a new log, later than `after`, with all parcels that are not acknowledged."""
        with self._lock:
            head = self._open()
            waiting = [number for number in sorted(self._parcels) if number > head.acknowledged]
            epoch = max(new_epoch(), f"{max(head.epoch, after)}~")
            for number, old in enumerate(waiting, 1):
                self._put(replace(self._read(head, old), epoch=epoch, number=number))
            # From here on the new log counts; before, its files are leftovers, which opening removes.
            last_keys = dict(head.last_keys)
            for number in sorted(self._parcels):
                if number <= head.acknowledged:
                    parcel = self._parcels[number]
                    last_keys[parcel.stream] = (parcel.key, 0, parcel.hash)
            earlier = (*head.earlier, head.epoch)
            self._put_head(Head(epoch, reason, earlier, last_keys=last_keys))
            self._load()

    def trim(self, *, keep: float = KEEP) -> None:
        """Delete acknowledged parcels that are older than `keep` seconds."""
        with self._lock:
            head = self._open()
            limit = (time.time() - keep) * 1e9
            times = self._place.files(head.epoch)
            first, deleted, last_keys = head.first, head.deleted, dict(head.last_keys)
            forgotten: list[str] = []
            while first <= head.acknowledged and times.get(_name(first), (0, 0))[1] <= limit:
                parcel = self._parcels[first]
                forgotten.append(last_keys.get(parcel.stream, ("", 0, ""))[0])
                last_keys[parcel.stream] = (parcel.key, parcel.number, parcel.hash)
                if parcel.kind not in ("acknowledgements", "interest"):
                    deleted = first
                first += 1
            if first == head.first:
                return
            # The head first: what it calls deleted is a leftover if a crash comes now.
            self._put_head(replace(head, first=first, deleted=deleted, last_keys=last_keys))
            for number in range(head.first, first):
                self._place.remove(f"{head.epoch}/{_name(number)}")
                del self._parcels[number], self._sizes[number]
            for key in forgotten:
                self._keys.pop(key, None)

    def parcel(self, number: int) -> Parcel:
        """A parcel that is kept, with its body."""
        with self._lock:
            return self._read(self._open(), number)

    def waiting_bytes(self) -> int:
        """The bytes of the bodies that are not acknowledged."""
        with self._lock:
            return sum(self._sizes[number] for number in self.unacknowledged())

    def unacknowledged(self) -> range:
        """The numbers of the parcels that are not acknowledged."""
        with self._lock:
            head = self._open()
            return range(max(head.acknowledged + 1, head.first), self.last + 1)

    def _open(self) -> Head:
        """The head, which is created if it is missing. It is read again if it was replaced."""
        text = self._place.read(HEAD)
        if text is None:
            self._put_head(Head(new_epoch(), "it is the first"))
            self._load()
        elif self._head is None or text != self._head.to_json():
            self._head = Head.parse(text, f"{self._place.url}/{HEAD}")
            self._load()
        assert self._head is not None
        return self._head

    def _load(self) -> None:
        """Read the headers of all parcels, and remove leftovers."""
        head = self._head
        assert head is not None
        self._parcels, self._sizes = {}, {}
        self._keys = {key: (number, hash) for key, number, hash in head.last_keys.values()}
        for folder in self._place.folders(""):
            if folder != head.epoch:
                self._place.remove_folder(folder)
        for name in sorted(self._place.files(head.epoch)):
            number = _number(name)
            if number is None or number < head.first:
                self._place.remove(f"{head.epoch}/{name}")
                continue
            # Without their bodies: a damaged one is its receiver's to find, and must not stop publishing.
            path = f"{head.epoch}/{name}"
            with self._place.streamed(path) as file:
                line = b"" if file is None else file.read(HEADER_BYTES).partition(b"\n")[0]
            self._keep(*Parcel.decode_header(line, f"{self._place.url}/{path}"))
        missing = sorted(set(range(head.first, self._last_kept(head) + 1)) - self._parcels.keys())
        if missing:
            reason = f"{self._place.url} has no parcel {missing[0]}, and later ones; restore it from a copy"
            raise LinkError("damaged-log", reason)

    def _last_kept(self, head: Head) -> int:
        return max(self._parcels, default=head.first - 1)

    def _keep(self, parcel: Parcel, size: int) -> None:
        self._parcels[parcel.number] = replace(parcel, body=b"")
        self._sizes[parcel.number] = size
        self._keys[parcel.key] = (parcel.number, parcel.hash)

    def _read(self, head: Head, number: int) -> Parcel:
        found = read_parcel(self._place, head.epoch, number)
        if found is None:
            raise LinkError(
                "damaged-log", f"{self._place.url} has lost parcel {number}; restore it from a copy"
            )
        return found

    def _write(self, parcel: Parcel) -> None:
        self._put(parcel)
        self._keep(parcel, len(parcel.body))

    def _put(self, parcel: Parcel) -> None:
        self._place.put(parcel.epoch, _name(parcel.number), parcel.encode())

    def _put_head(self, head: Head) -> None:
        self._place.put("", HEAD, head.to_json())
        self._head = head


def read_log(url: str, after: Position | None) -> Iterator[Parcel]:
    """The parcels of another broker's log after a position, from the first if it is None.

    `UnknownPositionError` if the log does not know the position. `LinkError` if it has deleted what follows,
    or a parcel is damaged.
    """
    place = place_at(url, LINK_ERRORS)
    text = place.read(HEAD)
    if text is None:
        if after is not None:
            raise UnknownPositionError
        return
    head = Head.parse(text, f"{url}/{HEAD}")
    start = 1
    if after is not None and after.epoch >= head.epoch:
        start = after.number + 1
        if after.epoch != head.epoch:
            raise UnknownPositionError
        if after.number >= head.first:
            known = read_parcel(place, head.epoch, after.number)
            if known is None and place.read(HEAD) != text:
                # Deleted at this moment: the next reading sees the log as it is then.
                return
            if known is None or known.hash != after.hash:
                raise UnknownPositionError
    if start <= head.deleted:
        reason = f"{url} has deleted parcels {start} to {head.deleted}, which were not received here"
        raise LinkError("gap", f"{reason}; restore this broker's state from a newer copy")
    number = max(start, head.first)
    while (parcel := read_parcel(place, head.epoch, number)) is not None:
        yield parcel
        number += 1


def read_parcel(place: Place, epoch: str, number: int) -> Parcel | None:
    """A parcel, checked; None if it is not there."""
    path = f"{epoch}/{_name(number)}"
    data = place.read(path)
    if data is None:
        return None
    parcel = Parcel.decode(data, f"{place.url}/{path}")
    if (parcel.epoch, parcel.number) != (epoch, number):
        raise LinkError(
            "damaged-parcel", f"{place.url}/{path} is another parcel: {parcel.epoch}/{parcel.number}"
        )
    return parcel


def _name(number: int) -> str:
    return f"{number:012}.parcel"


def _number(name: str) -> int | None:
    stem, dot, suffix = name.partition(".")
    return int(stem) if dot and suffix == "parcel" and stem.isdecimal() else None
