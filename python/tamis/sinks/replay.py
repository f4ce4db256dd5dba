"""Replays dead letters: puts messages back into an inbox, sends deliveries again. A mark records a replay:

    replays/<file>.json     which letters were replayed, and by which file of the inbox

A replay is a two-phase commit: write the file into the inbox under a hidden name, write the mark, rename the
file. Letters with a mark were replayed: `finish` renames a file that a crash left hidden. Deliveries are sent
by the sender of webhooks, and marked afterwards.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import SinkError
from tamis.sinks.dead_letters import DeadLetters, Letter
from tamis.storage.failures import SINK_ERRORS
from tamis.storage.files import fsync

REPLAYS = "replays"

GROUP_BYTES = 8 << 20
"""The size of a row group in bytes: this much is in memory at once."""

_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("headers", pa.string()),
    pa.field("xml", pa.binary()),
]
_MESSAGE = pa.schema(_COLUMNS)


@dataclass(frozen=True, slots=True)
class ReplayMark:
    """Records that letters were replayed."""

    time: str
    """When, in ISO 8601."""
    inbox: str | None
    """None for deliveries: they go to no inbox."""
    file: str
    """The name of the file in the inbox."""
    letters: tuple[str, ...]
    """Their keys."""

    def draft(self, inbox: str) -> Path:
        """The hidden file: an inbox skips names that begin with a dot."""
        return Path(inbox) / f".{self.file}"


Send: TypeAlias = Callable[[Iterable[tuple[str, bytes]]], Mapping[str, str]]
"""Sends deliveries (id, payload) again; returns the reason for each one that it does not send."""


@dataclass(frozen=True, slots=True)
class ReplaySelection:
    """Letters to replay, oldest first."""

    messages: Sequence[tuple[Path, Letter]]
    """With their inboxes."""
    deliveries: Sequence[Letter]
    refused: Sequence[str]
    """Reasons for the letters that are left out."""


class Replays:
    """The replays of a directory of dead letters."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._letters = dead_letters
        self._place = dead_letters.place

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock replays, so that no letter is replayed twice. Writers of dead letters do not wait."""
        with self._place.locked(REPLAYS):
            yield

    def marks(self) -> dict[str, ReplayMark]:
        """The newest mark of each replayed letter, by the letter's key."""
        marks = sorted(self._marks(), key=lambda mark: mark.time)
        return {key: mark for mark in marks for key in mark.letters}

    def _marks(self) -> Iterator[ReplayMark]:
        for name in self._place.files(REPLAYS):
            text = self._place.read(f"{REPLAYS}/{name}") if name.endswith(".json") else None
            if text is not None:
                value = json.loads(text)
                yield ReplayMark(**{**value, "letters": tuple(value["letters"])})

    def replay(self, letters: Sequence[Letter], inbox: Path) -> None:
        """Put the messages of letters into an inbox under their ids, so that deliveries get the same ids."""
        if not inbox.is_dir():
            raise SinkError("no-inbox", f"{inbox} is not a directory: name the inbox of a source")
        mark = _mark(f"replay-{uuid.uuid4().hex}.parquet", str(inbox.absolute()), letters)
        draft = mark.draft(str(inbox))
        with SINK_ERRORS.at(inbox):
            try:
                _write(draft, self._letters.with_raw(letters))
                self._put(mark)
            except BaseException:
                # The mark is written before the rename: with it, `finish` renames the file after a crash.
                self._place.remove(f"{REPLAYS}/{mark.file}.json")
                draft.unlink(missing_ok=True)
                raise
            _rename_into_inbox(mark)

    def resend(self, letters: Sequence[Letter], send: Send) -> list[str]:
        """Send deliveries again; returns the reasons for those that are not sent."""
        refusals = send((str(letter.delivery), raw) for letter, raw in self._letters.with_raw(letters))
        sent = [letter for letter in letters if letter.delivery not in refusals]
        if sent:
            # A crash before this is harmless: a delivery that is being sent is not sent twice.
            self._put(_mark(f"resend-{uuid.uuid4().hex}", None, sent))
        reasons = [(one.key, refusals.get(str(one.delivery))) for one in letters]
        return [f"{key}: {reason}" for key, reason in reasons if reason is not None]

    def replay_all(self, chosen: ReplaySelection, send: Send) -> tuple[int, list[str]]:
        """Replay letters, one file per inbox; returns their number, and the reasons for those left out."""
        by_inbox = sorted(chosen.messages, key=lambda one: str(one[0]))
        for inbox, some in groupby(by_inbox, key=lambda one: one[0]):
            self.replay([letter for _, letter in some], inbox)
        unsent = self.resend(chosen.deliveries, send) if chosen.deliveries else []
        count = len(chosen.messages) + len(chosen.deliveries) - len(unsent)
        return count, [*chosen.refused, *unsent]

    def _put(self, mark: ReplayMark) -> None:
        self._place.put(REPLAYS, f"{mark.file}.json", json.dumps(asdict(mark)).encode())

    def finish(self) -> None:
        """Rename the files that a crash left hidden."""
        for mark in self._marks():
            with SINK_ERRORS.at(mark.inbox or mark.file):
                _rename_into_inbox(mark)


def choose(
    letters: Iterable[Letter],
    marks: Mapping[str, ReplayMark],
    inbox_of: Callable[[Letter], Path | None],
    *,
    again: bool,
) -> ReplaySelection:
    """Select letters to replay, with their inboxes, and deliveries to send again; reasons for the others.

    `letters` come newest first. A message with several letters is replayed once, and so is a delivery;
    `again` includes what was replayed before.
    """
    messages: list[tuple[Path, Letter]] = []
    deliveries: list[Letter] = []
    refused: list[str] = []
    seen: set[tuple[str, str, str | None]] = set()
    for letter in letters:
        key = (letter.source, letter.id, letter.delivery)
        inbox = inbox_of(letter)
        if key in seen:
            continue
        seen.add(key)
        if letter.key in marks and not again:
            refused.append(f"{letter.key} was replayed at {marks[letter.key].time}: see --again")
        elif letter.delivery is not None:
            deliveries.append(letter)
        elif letter.line is None and letter.subscription is None:
            reason = f"{letter.key} is not a message ({letter.code}): give its source {letter.offset} again"
            refused.append(reason)
        elif inbox is None:
            refused.append(f"{letter.key} is of {letter.source}, which has no inbox: name one by --to")
        else:
            messages.append((inbox, letter))
    return ReplaySelection(messages[::-1], deliveries[::-1], refused[::-1])


def _mark(file: str, inbox: str | None, letters: Iterable[Letter]) -> ReplayMark:
    time = datetime.now(UTC).isoformat(timespec="microseconds")
    return ReplayMark(time, inbox, file, tuple(letter.key for letter in letters))


def _rename_into_inbox(mark: ReplayMark) -> None:
    """Rename a hidden file to its final name, unless it was renamed before."""
    if mark.inbox is not None:
        with suppress(FileNotFoundError):
            mark.draft(mark.inbox).rename(Path(mark.inbox) / mark.file)
            fsync(Path(mark.inbox))


def _write(path: Path, messages: Iterable[tuple[Letter, bytes]]) -> None:
    """Write messages as Parquet; durable when this returns."""
    rows: list[dict[str, Any]] = []
    size = 0
    with path.open("xb") as file:
        with pq.ParquetWriter(file, _MESSAGE) as writer:
            for letter, raw in messages:
                rows.append({"id": letter.id, "headers": letter.headers, "xml": raw})
                size += len(raw)
                if size >= GROUP_BYTES:
                    writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=_MESSAGE))
                    rows, size = [], 0
            if rows:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=_MESSAGE))
        file.flush()
        os.fsync(file.fileno())
