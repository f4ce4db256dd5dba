"""A write-ahead log of batches: which generation each is matched against, and its counts once it is done.

One file per checkpoint, one line of JSON when a batch begins and one when it ends:

    {"batch": 7, "generation": 3, "begun": "2026-01-01T00:00:00.000000+00:00", "plan": "1f3a…"}
    {"batch": 7, "counts": {"read": 10, …}}

A batch that is run again after a crash finds its first line and uses the same generation and time. If Spark
planned something else under the same number, as after restoring a copy of the checkpoint, it is a new batch.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamis.model.batch import Batch
from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import atomic_file
from tamis.storage.lines import append_line, read_lines

MAX_LINES = 100_000
"""A longer file is truncated to its newest batches when it is opened."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a batch: read = matched + unmatched + dead.

    For each subscription that a message matches there is a delivery or a failed transformation.
    """

    read: int = 0
    matched: int = 0
    dead: int = 0
    deliveries: int = 0
    candidates: int = 0
    failed: int = 0
    skipped_entities: int = 0
    settled: int = 0
    verified: int = 0
    steps: int = 0
    looked_up: int = 0
    uncached: int = 0
    cache_bytes: int = 0
    """The maximum over the workers, like the next field."""
    subscription_bytes: int = 0

    @property
    def unmatched(self) -> int:
        return self.read - self.matched - self.dead


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The log's entry for a batch."""

    batch: int
    generation: int
    begun: str
    """When it first began, in ISO 8601 with microseconds: part of the deliveries, so it must not change."""
    plan: str = ""
    """A hash of what Spark planned under its number."""
    counts: Counts | None = None
    """None until the batch is done."""

    @property
    def time(self) -> datetime:
        """`begun` as a datetime."""
        return datetime.fromisoformat(self.begun)

    def lines(self) -> Iterator[dict[str, Any]]:
        """The lines of the log: one when it begins, one when it ends."""
        begin_line = {"batch": self.batch, "generation": self.generation, "begun": self.begun}
        yield begin_line | ({"plan": self.plan} if self.plan else {})
        if self.counts is not None:
            yield {"batch": self.batch, "counts": asdict(self.counts)}


def all_batch_logs(folder: Path) -> Iterator["BatchLog"]:
    """The logs of all sources and checkpoints below a folder."""
    for path in sorted(folder.glob("*/*.jsonl")):
        yield BatchLog(path.parent, path.stem)


class BatchLog:
    """The log of one checkpoint."""

    def __init__(self, folder: Path, checkpoint: str) -> None:
        self.checkpoint = checkpoint
        self._path = folder / f"{checkpoint}.jsonl"
        self._records: dict[int, BatchRecord] = {}
        with STORE_ERRORS.at(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            lines = self._read()
            if len(lines) > MAX_LINES:
                self._rewrite()

    def begin(self, number: int, newest: Callable[[], int], plan: str = "") -> BatchRecord:
        """The record of a batch. A new batch gets the newest generation, and its record is durable.

        Generations never go back: a batch has at least the generation of the one before.
        """
        known = self._records.get(number)
        if known is not None and known.plan in ("", plan):
            return known
        begun = datetime.now(UTC).isoformat(timespec="microseconds")
        return self._begin(BatchRecord(number, max(newest(), self.last_generation), begun, plan))

    def replace_generation(self, number: int, generation: int) -> None:
        """Assign another generation to a batch whose own is lost."""
        self._begin(replace(self._records[number], generation=generation))

    def finish(self, number: int, counts: Counts) -> None:
        """Record that a batch is done; it is not run again."""
        record = self._records[number]
        if record.counts is None:
            done = replace(record, counts=counts)
            *_, end_line = done.lines()
            self._append(end_line)
            self._records[number] = done

    def records(self) -> Iterator[BatchRecord]:
        """All records, by batch number."""
        yield from (self._records[number] for number in sorted(self._records))

    @property
    def last_generation(self) -> int:
        """The newest generation of a batch; -1 if there is no batch."""
        return max((record.generation for record in self._records.values()), default=-1)

    def unfinished(self) -> list[BatchRecord]:
        """Batches that have begun and are not done."""
        return [record for record in self.records() if record.counts is None]

    def batch_id(self, number: int) -> Batch:
        """The identity of a batch, for sinks."""
        return Batch(self.checkpoint, number, self._records[number].plan)

    def _begin(self, record: BatchRecord) -> BatchRecord:
        """Append the first line of a batch. Its record is visible already while it is written."""
        before = self._records.get(record.batch)
        self._records[record.batch] = record
        try:
            (begin_line,) = record.lines()
            self._append(begin_line)
        except BaseException:
            del self._records[record.batch]
            if before is not None:
                self._records[record.batch] = before
            raise
        return record

    def _read(self) -> list[dict[str, Any]]:
        """Load the file."""
        lines = read_lines(self._path)
        for line in lines:
            number = line["batch"]
            if "counts" in line:
                self._records[number] = replace(self._records[number], counts=Counts(**line["counts"]))
            else:
                self._records[number] = BatchRecord(
                    number, line["generation"], line["begun"], line.get("plan", "")
                )
        return lines

    def _append(self, line: dict[str, Any]) -> None:
        with STORE_ERRORS.at(self._path):
            append_line(self._path, line)

    def _rewrite(self) -> None:
        newest = sorted(self._records)[-MAX_LINES // 4 :]
        self._records = {number: self._records[number] for number in newest}
        with atomic_file(self._path) as draft, draft.open("w") as file:
            for record in self.records():
                file.writelines(json.dumps(line) + "\n" for line in record.lines())
