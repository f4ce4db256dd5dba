"""Which generation each batch is matched against, and what came of it: written down before the work starts.

One file for a checkpoint, a line of JSON for a beginning and one for an end. A batch that is run again,
after a crash, finds its beginning and is matched against the same generation at the same time. A number under
which something else is planned now, as after a copy of the checkpoint was restored, is another batch.
"""

import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamis.model.batch import Batch
from tamis.storage.files import drafted, told

KEPT_LINES = 100_000
"""A file of more lines is cut down to the newest when it is opened."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the messages of a batch: read = matched + unmatched + dead.

    Each subscription that a message matches gets a delivery, or its transformation failed.
    """

    read: int = 0
    matched: int = 0
    dead: int = 0
    deliveries: int = 0
    candidates: int = 0
    failed: int = 0

    @property
    def unmatched(self) -> int:
        return self.read - self.matched - self.dead


@dataclass(frozen=True, slots=True)
class Record:
    """What is written down of a batch."""

    batch: int
    generation: int
    begun: str
    """When, in ISO 8601 with microseconds: deliveries carry it, so that they are the same each time."""
    plan: str = ""
    """What Spark planned under its number, as a hash."""
    counts: Counts | None = None
    """What came of it, once it is done."""

    @property
    def time(self) -> datetime:
        """When it was begun."""
        return datetime.fromisoformat(self.begun)

    def lines(self) -> Iterator[dict[str, Any]]:
        """What is written: a beginning, and an end."""
        beginning = {"batch": self.batch, "generation": self.generation, "begun": self.begun}
        yield beginning | ({"plan": self.plan} if self.plan else {})
        if self.counts is not None:
            yield {"batch": self.batch, "counts": asdict(self.counts)}


def all_batches(folder: Path) -> Iterator["Batches"]:
    """The batches of all sources and checkpoints that ever were, by their folders in a folder."""
    for path in sorted(folder.glob("*/*.jsonl")):
        yield Batches(path.parent, path.stem)


class Batches:
    """The batches of one checkpoint."""

    def __init__(self, folder: Path, checkpoint: str) -> None:
        self.checkpoint = checkpoint
        self._path = folder / f"{checkpoint}.jsonl"
        self._records: dict[int, Record] = {}
        with told(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            lines = self._read()
            if len(lines) > KEPT_LINES:
                self._rewrite()

    def begin(self, number: int, newest: Callable[[], int], plan: str = "") -> Record:
        """What is written down of a batch; if it is new, with the newest generation, before this returns.

        Generations never go back: a batch has at least that of the one before.
        """
        known = self._records.get(number)
        if known is not None and known.plan in ("", plan):
            return known
        begun = datetime.now(UTC).isoformat(timespec="microseconds")
        return self._begin(Record(number, max(newest(), self.last), begun, plan))

    def begin_anew(self, number: int, generation: int) -> None:
        """Write down another generation for a batch that has begun: its own is lost."""
        self._begin(replace(self._records[number], generation=generation))

    def finish(self, number: int, counts: Counts) -> None:
        """Write down that a batch is done; it is not run again."""
        record = self._records[number]
        if record.counts is None:
            done = replace(record, counts=counts)
            *_, end = done.lines()
            self._append(end)
            self._records[number] = done

    def records(self) -> Iterator[Record]:
        """All batches that are known, in order."""
        yield from (self._records[number] for number in sorted(self._records))

    @property
    def last(self) -> int:
        """The newest generation that a batch was matched against; -1 if there is no batch."""
        return max((record.generation for record in self._records.values()), default=-1)

    def unfinished(self) -> list[Record]:
        """Batches that have begun and may be run again."""
        return [record for record in self.records() if record.counts is None]

    def key(self, number: int) -> Batch:
        """The batch as others know it."""
        return Batch(self.checkpoint, number, self._records[number].plan)

    def _begin(self, record: Record) -> Record:
        """Write a beginning down. Its generation is needed already while it is written."""
        before = self._records.get(record.batch)
        self._records[record.batch] = record
        try:
            (beginning,) = record.lines()
            self._append(beginning)
        except BaseException:
            del self._records[record.batch]
            if before is not None:
                self._records[record.batch] = before
            raise
        return record

    def _read(self) -> list[dict[str, Any]]:
        """Take in the file. A last line that a crash cut short was never acted upon, and is cut off."""
        if not self._path.exists():
            return []
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            os.truncate(self._path, len(whole))
        lines = [json.loads(line) for line in whole.splitlines()]
        for line in lines:
            number = line["batch"]
            if "counts" in line:
                self._records[number] = replace(self._records[number], counts=Counts(**line["counts"]))
            else:
                self._records[number] = Record(
                    number, line["generation"], line["begun"], line.get("plan", "")
                )
        return lines

    def _append(self, line: dict[str, Any]) -> None:
        # Unbuffered: what finds no room is not written later, when the file is closed.
        with told(self._path), self._path.open("ab", buffering=0) as file:
            before = file.seek(0, os.SEEK_END)
            data = json.dumps(line).encode() + b"\n"
            try:
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                # Half a line would become one with the next.
                file.truncate(before)
                raise

    def _rewrite(self) -> None:
        newest = sorted(self._records)[-KEPT_LINES // 4 :]
        self._records = {number: self._records[number] for number in newest}
        with drafted(self._path) as draft, draft.open("w") as file:
            for record in self.records():
                file.writelines(json.dumps(line) + "\n" for line in record.lines())
