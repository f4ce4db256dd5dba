"""Dead letters → an inbox, once more. What was replayed is marked, beside the letters:

    replays/<file>.json     which letters, and the file that they entered an inbox by

The file is written in the inbox under a name that nobody reads. Then the mark is made, and then the file
gets its name. So letters are replayed if there is a mark: a file that a crash kept from its name gets it next
time.
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
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.connectors.dead_letters import DeadLetters, Letter
from tamis.connectors.ledger import sync_folder
from tamis.connectors.place import told
from tamis.errors import SinkError

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
    inbox: str
    file: str
    """The name that the messages enter the inbox by."""
    letters: tuple[str, ...]
    """Their keys."""

    @property
    def draft(self) -> Path:
        """The file before it enters: an inbox does not see names that begin with a dot."""
        return Path(self.inbox) / f".{self.file}"


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
        name = f"replay-{uuid.uuid4().hex}.parquet"
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        mark = Mark(time, str(inbox.absolute()), name, tuple(letter.key for letter in letters))
        with told(inbox):
            try:
                _write(mark.draft, self._letters.raws(letters))
                self._place.put(REPLAYS, f"{mark.file}.json", json.dumps(asdict(mark)).encode())
            except BaseException:
                # First what says that the file is there, then the file.
                self._place.remove(f"{REPLAYS}/{mark.file}.json")
                mark.draft.unlink(missing_ok=True)
                raise
            _enter(mark)

    def replay_all(self, chosen: Sequence[tuple[Path, Letter]]) -> None:
        """Put letters into the inboxes beside them: one file for an inbox, and in it letters as they came."""
        for inbox, some in groupby(sorted(chosen, key=lambda one: str(one[0])), key=lambda one: one[0]):
            self.replay([letter for _, letter in some], inbox)

    def finish(self) -> None:
        """Let in what a crash kept waiting."""
        for mark in self._marks():
            with told(mark.inbox):
                _enter(mark)


def choose(
    letters: Iterable[Letter],
    marks: Mapping[str, Mark],
    inbox_of: Callable[[Letter], Path | None],
    *,
    again: bool,
) -> tuple[list[tuple[Path, Letter]], list[str]]:
    """Letters with the inboxes that they go to, the oldest first; and why others are left out.

    They come the newest first. A message that has died more than once is replayed once; `again` also takes
    what was replayed before.
    """
    chosen: list[tuple[Path, Letter]] = []
    refused: list[str] = []
    seen: set[tuple[str, str]] = set()
    for letter in letters:
        message = (letter.source, letter.id)
        inbox = inbox_of(letter)
        if message in seen:
            continue
        seen.add(message)
        if letter.key in marks and not again:
            refused.append(f"{letter.key} was replayed at {marks[letter.key].time}: see --again")
        elif letter.line is None and letter.subscription is None:
            reason = f"{letter.key} is no message ({letter.code}): let its source have {letter.offset} again"
            refused.append(reason)
        elif inbox is None:
            refused.append(f"{letter.key} is of {letter.source}, which has no inbox: name one by --to")
        else:
            chosen.append((inbox, letter))
    return chosen[::-1], refused[::-1]


def _enter(mark: Mark) -> None:
    """Give a file its name in its inbox, unless it has it."""
    with suppress(FileNotFoundError):
        mark.draft.rename(Path(mark.inbox) / mark.file)
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
