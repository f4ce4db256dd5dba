"""A sample of the messages that a job reads, from which the publisher estimates how selective conditions are.

For each tenant and period, the messages with the smallest ranks (bottom-k sampling). A rank is a hash of a
secret key, the source and the id of the message. So samples of parts of a batch can be merged, a batch that
is run again adds nothing, and publishers cannot choose what is sampled.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from tamis.model.envelope_value import Envelope
from tamis.model.headers import pack_headers, unpack_headers
from tamis.model.sample import MESSAGES, NO_BOUND, Sampled, Sampling
from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import atomic_file

PERIOD_HOURS = 6
PERIODS = 8
"""Older messages do not count: what is published changes over time."""

PERIOD_BYTES = 4 << 20
"""All messages of a period; those with the largest ranks are dropped first."""

_TYPES: dict[str, pa.DataType] = {
    "period": pa.int64(),
    "tenant": pa.string(),
    "rank": pa.int64(),
    "message": pa.binary(),
    "source": pa.string(),
    "topic": pa.string(),
    "received": pa.timestamp("us", "UTC"),
    "headers": pa.string(),
}
SCHEMA = pa.schema(_TYPES)


@dataclass(slots=True)
class _Period:
    """The sample of some hours."""

    by_tenant: dict[str, list[Sampled]] = field(default_factory=dict)
    """Ascending by rank."""
    bound: int = NO_BOUND
    """The smallest rank that was dropped for lack of room."""

    def add(self, sampled: Iterable[Sampled]) -> bool:
        """Merge messages; whether that changed anything."""
        added = _by_tenant(one for one in sampled if one.rank < self.bound)
        before = {tenant: self.by_tenant.get(tenant, []) for tenant in added}
        for tenant, messages in added.items():
            self.by_tenant[tenant] = _smallest([*before[tenant], *messages])
        self._drop_excess()
        return any(self.by_tenant.get(tenant, []) != messages for tenant, messages in before.items())

    def messages(self) -> list[Sampled]:
        return [one for messages in self.by_tenant.values() for one in messages]

    def _drop_excess(self) -> None:
        ranked = sorted(self.messages(), key=_rank)
        size = 0
        for at, one in enumerate(ranked):
            size += one.size
            if size > PERIOD_BYTES:
                self.bound = one.rank
                self.by_tenant = _by_tenant(ranked[:at])
                return


class MessageSample:
    """The sample of a job, in a file. If the file is deleted, the sample is empty again. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._is_changed = False
        self._clear()
        self._read()

    def sampling(self, begun: datetime) -> Sampling:
        """What to sample in a batch that begins at a time."""
        with self._lock:
            period = self._periods.get(_period(begun), _Period())
            full = {
                tenant: kept[-1].rank for tenant, kept in period.by_tenant.items() if len(kept) == MESSAGES
            }
            return Sampling(self._key, period.bound, full)

    def add(self, begun: datetime, sampled: Iterable[Sampled]) -> None:
        """Merge the messages that a batch sampled."""
        with self._lock:
            self._add(begun, sampled)

    def _add(self, begun: datetime, sampled: Iterable[Sampled]) -> None:
        if self._is_saved and not self._path.exists():
            self._clear()
        period = self._periods.setdefault(_period(begun), _Period())
        if period.add(sampled):
            self._is_changed = True
        newest = max(self._periods)
        for old in [number for number in self._periods if number <= newest - PERIODS]:
            del self._periods[old]

    def messages(self) -> list[Sampled]:
        """The messages with the smallest ranks of each tenant, over all periods, ascending by rank."""
        with self._lock:
            merged = _by_tenant(one for period in self._periods.values() for one in period.messages())
        return sorted((one for messages in merged.values() for one in _smallest(messages)), key=_rank)

    def save(self) -> None:
        """Write the file if the sample has changed."""
        with self._lock:
            if self._is_changed:
                self._write()

    def _write(self) -> None:
        rows = [
            {"period": number, "tenant": one.tenant, "rank": one.rank, "message": one.message}
            | _envelope_fields(one.envelope or Envelope())
            for number, period in sorted(self._periods.items())
            for one in period.messages()
        ]
        schema = SCHEMA.with_metadata({"key": str(self._key)})
        with STORE_ERRORS.at(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with (
                atomic_file(self._path) as draft,
                pa.OSFile(str(draft), "wb") as sink,
                pa.ipc.new_file(sink, schema) as writer,
            ):
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        self._is_saved, self._is_changed = True, False

    def _clear(self) -> None:
        self._key = int.from_bytes(os.urandom(8), signed=True)
        self._periods: dict[int, _Period] = {}
        self._is_saved = self._is_changed = False

    def _read(self) -> None:
        """The sample of an earlier run. If its file is missing or damaged, it is empty: it is an estimate."""
        try:
            with pa.OSFile(str(self._path), "rb") as source, pa.ipc.open_file(source) as reader:
                table = reader.read_all()
                key = int((reader.schema.metadata or {})[b"key"])
        except (OSError, pa.ArrowInvalid, KeyError, ValueError):
            return
        if not table.schema.equals(SCHEMA):
            return
        rows = table.to_pylist()
        for number in {row["period"] for row in rows}:
            period = self._periods[number] = _Period()
            period.add(_sampled(row) for row in rows if row["period"] == number)
        self._key, self._is_saved = key, True


def _envelope_fields(envelope: Envelope) -> dict[str, Any]:
    fields = {"source": envelope.source, "topic": envelope.topic, "received": envelope.received}
    return fields | {"headers": pack_headers(envelope.headers)}


def _sampled(row: Mapping[str, Any]) -> Sampled:
    received, headers = row["received"], unpack_headers(row["headers"])
    envelope = Envelope(row["source"], row["topic"], received, headers)
    return Sampled(row["rank"], row["tenant"], row["message"], None if envelope == Envelope() else envelope)


def open_sample(path: Path, is_kept: bool) -> MessageSample | None:
    """The sample in a file; None, and no file, if none is to be kept."""
    if is_kept:
        return MessageSample(path)
    with STORE_ERRORS.at(path):
        path.unlink(missing_ok=True)
    return None


def _period(time: datetime) -> int:
    return int(time.timestamp()) // (PERIOD_HOURS * 3600)


def _rank(sampled: Sampled) -> int:
    return sampled.rank


def _by_tenant(sampled: Iterable[Sampled]) -> dict[str, list[Sampled]]:
    """In the same order."""
    by_tenant: dict[str, list[Sampled]] = defaultdict(list)
    for one in sampled:
        by_tenant[one.tenant].append(one)
    return dict(by_tenant)


def _smallest(sampled: Iterable[Sampled]) -> list[Sampled]:
    """The messages with the smallest ranks, each once, ascending."""
    by_rank = {one.rank: one for one in sampled}
    return nsmallest(MESSAGES, by_rank.values(), key=_rank)
