"""Dead letters → an inbox, or a webhook, once more. What was replayed is marked, beside the letters:

    replays/<file>.json     which letters, and the file that they entered an inbox by

The file is written in the inbox under a name that nobody reads. Then the mark is made, and then the file
gets its name. So letters are replayed if there is a mark: a file that a crash kept from its name gets it next
time. Deliveries go back to those who send them, and are marked then.
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
from tamis.sources.ledger import sync_folder
from tamis.storage.place import told

REPLAYS = "replays"

GROUP_BYTES = 8 << 20
"""A row group of the file has about so many bytes: they are in memory together."""

_COLUMNS: "list[pa.Field[Any]]" = [pa.field("id", pa.string()), pa.field("xml", pa.binary())]
_MESSAGE = pa.schema(_COLUMNS)


@dataclass(frozen=True, slots=True)
class Mark:
    """That letters were replayed."""

    time: str
    """When, in ISO 8601."""
    inbox: str | None
    """None for deliveries, which enter none."""
    file: str
    """The name that the messages enter the inbox by."""
    letters: tuple[str, ...]
    """Their keys."""

    def draft(self, inbox: str) -> Path:
        """The file before it enters: an inbox does not see names that begin with a dot."""
        return Path(inbox) / f".{self.file}"


Send: TypeAlias = Callable[[Iterable[tuple[str, bytes]]], Mapping[str, str]]
"""Sends deliveries once more, ids with their payloads; says of those that it does not send why not."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Letters to replay, the oldest first."""

    messages: Sequence[tuple[Path, Letter]]
    """With the inboxes that they go to."""
    deliveries: Sequence[Letter]
    refused: Sequence[str]
    """Why others are left out."""


class Replays:
    """What was replayed of the dead letters, and how more is."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._letters = dead_letters
        self._place = dead_letters.place

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from replaying, so that no letter is replayed by two; who buries need not wait."""
        with self._place.locked(REPLAYS):
            yield

    def marks(self) -> dict[str, Mark]:
        """The last mark of each letter that has one, by the letter's key."""
        marks = sorted(self._marks(), key=lambda mark: mark.time)
        return {key: mark for mark in marks for key in mark.letters}

    def _marks(self) -> Iterator[Mark]:
        for name in self._place.files(REPLAYS):
            text = self._place.read(f"{REPLAYS}/{name}") if name.endswith(".json") else None
            if text is not None:
                value = json.loads(text)
                yield Mark(**{**value, "letters": tuple(value["letters"])})

    def replay(self, letters: Sequence[Letter], inbox: Path) -> None:
        """Put the messages of letters into an inbox, with their ids, so that deliveries get the same too."""
        if not inbox.is_dir():
            raise SinkError("no-inbox", f"{inbox} is no directory: name the inbox of a source")
        mark = _mark(f"replay-{uuid.uuid4().hex}.parquet", str(inbox.absolute()), letters)
        draft = mark.draft(str(inbox))
        with told(inbox):
            try:
                _write(draft, self._letters.raws(letters))
                self._put(mark)
            except BaseException:
                # First what says that the file is there, then the file.
                self._place.remove(f"{REPLAYS}/{mark.file}.json")
                draft.unlink(missing_ok=True)
                raise
            _enter(mark)

    def resend(self, letters: Sequence[Letter], send: Send) -> list[str]:
        """Have deliveries sent once more; why some are not."""
        why_not = send((str(letter.delivery), raw) for letter, raw in self._letters.raws(letters))
        sent = [letter for letter in letters if letter.delivery not in why_not]
        if sent:
            # Who is interrupted before may try again: what is on its way is not sent twice.
            self._put(_mark(f"resend-{uuid.uuid4().hex}", None, sent))
        told = [(one.key, why_not.get(str(one.delivery))) for one in letters]
        return [f"{key}: {reason}" for key, reason in told if reason is not None]

    def replay_all(self, chosen: Chosen, send: Send) -> tuple[int, list[str]]:
        """Replay letters, one file for an inbox; how many that were, and why others were not."""
        by_inbox = sorted(chosen.messages, key=lambda one: str(one[0]))
        for inbox, some in groupby(by_inbox, key=lambda one: one[0]):
            self.replay([letter for _, letter in some], inbox)
        late = self.resend(chosen.deliveries, send) if chosen.deliveries else []
        count = len(chosen.messages) + len(chosen.deliveries) - len(late)
        return count, [*chosen.refused, *late]

    def _put(self, mark: Mark) -> None:
        self._place.put(REPLAYS, f"{mark.file}.json", json.dumps(asdict(mark)).encode())

    def finish(self) -> None:
        """Let in what a crash kept waiting."""
        for mark in self._marks():
            with told(mark.inbox or mark.file):
                _enter(mark)


def choose(
    letters: Iterable[Letter],
    marks: Mapping[str, Mark],
    inbox_of: Callable[[Letter], Path | None],
    *,
    again: bool,
) -> Chosen:
    """Letters with the inboxes that they go to, or deliveries; and why others are left out.

    They come the newest first. A message that has died more than once is replayed once, and so is a delivery;
    `again` also takes what was replayed before.
    """
    messages: list[tuple[Path, Letter]] = []
    deliveries: list[Letter] = []
    refused: list[str] = []
    seen: set[tuple[str, str, str | None]] = set()
    for letter in letters:
        what = (letter.source, letter.id, letter.delivery)
        inbox = inbox_of(letter)
        if what in seen:
            continue
        seen.add(what)
        if letter.key in marks and not again:
            refused.append(f"{letter.key} was replayed at {marks[letter.key].time}: see --again")
        elif letter.delivery is not None:
            deliveries.append(letter)
        elif letter.line is None and letter.subscription is None:
            reason = f"{letter.key} is no message ({letter.code}): let its source have {letter.offset} again"
            refused.append(reason)
        elif inbox is None:
            refused.append(f"{letter.key} is of {letter.source}, which has no inbox: name one by --to")
        else:
            messages.append((inbox, letter))
    return Chosen(messages[::-1], deliveries[::-1], refused[::-1])


def _mark(file: str, inbox: str | None, letters: Iterable[Letter]) -> Mark:
    time = datetime.now(UTC).isoformat(timespec="microseconds")
    return Mark(time, inbox, file, tuple(letter.key for letter in letters))


def _enter(mark: Mark) -> None:
    """Give a file its name in its inbox, unless it has it."""
    if mark.inbox is not None:
        with suppress(FileNotFoundError):
            mark.draft(mark.inbox).rename(Path(mark.inbox) / mark.file)
            sync_folder(Path(mark.inbox))


def _write(path: Path, messages: Iterable[tuple[Letter, bytes]]) -> None:
    """A table of messages, safe when this returns."""
    rows: list[dict[str, Any]] = []
    size = 0
    with path.open("xb") as file:
        with pq.ParquetWriter(file, _MESSAGE) as writer:
            for letter, raw in messages:
                rows.append({"id": letter.id, "xml": raw})
                size += len(raw)
                if size >= GROUP_BYTES:
                    writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=_MESSAGE))
                    rows, size = [], 0
            if rows:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=_MESSAGE))
        file.flush()
        os.fsync(file.fileno())
