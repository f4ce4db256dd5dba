"""Kills a process that publishes a batch, or replays a dead letter, at each file operation; checks the rest.

Run as `python -m tests.helpers.publish_killed outbox|replay`; prints how often it killed.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.model.batch import Batch
from tamis.sinks.dead_letters import LETTER, DeadLetters, LetterFilter
from tamis.sinks.outbox import Outbox
from tamis.sinks.replay import Replays
from tests.helpers.delivery_rows import TIME, batches, deliveries
from tests.helpers.killing import kill_at_each_step

BATCH = Batch("checkpoint", 3)
ROWS = deliveries(range(20))


def publish(here: Path) -> None:
    """A batch of two tasks, one of which runs twice."""
    outbox = Outbox(here)
    parts = outbox.write(BATCH, 0, batches(ROWS[:10]))
    parts = outbox.write(BATCH, 0, batches(ROWS[:10]))
    outbox.publish(BATCH, [*parts, *outbox.write(BATCH, 1, batches(ROWS[10:]))])


def see_published(here: Path, _: int) -> None:
    """Check that all of the batch is published or nothing, and after another attempt all of it once."""
    outbox = Outbox(here)
    before = ids(outbox)
    assert before in ([], sorted(row["id"] for row in ROWS)), before
    parts = [part for at in range(4) for part in outbox.write(BATCH, at, batches(ROWS[at * 5 : at * 5 + 5]))]
    again = outbox.publish(BATCH, parts)
    assert ids(outbox) == sorted(row["id"] for row in ROWS)
    there = {str(path.relative_to(here)) for path in (here / "data").rglob("*") if path.is_file()}
    assert there == {part.path for part in again.parts}


def ids(outbox: Outbox) -> list[str]:
    """The ids of all deliveries that count."""
    rows = (batch for publication in outbox.published() for batch in outbox.read(publication))
    return sorted(row for batch in rows for row in batch.column("id").to_pylist() if row)


def write_and_replay_letter(here: Path) -> None:
    """A dead letter goes back into the inbox."""
    inbox = here / "inbox"
    inbox.mkdir()
    letters = DeadLetters(here / "dead")
    row = {
        "tenant": "", "source": "inbox", "id": "m1", "offset": "m1.xml", "received": TIME, "code": "bad",
        "headers": '{"priority":"high"}', "reason": "it is", "position": 1, "line": 1, "column": 2,
        "raw": b"<a",
    }  # fmt: skip
    parts = letters.write(BATCH, 0, [pa.RecordBatch.from_pylist([row], schema=LETTER)])
    letters.publish(BATCH, parts)
    Replays(letters).replay(list(letters.letters(LetterFilter())), inbox)


def see_replayed(here: Path, _: int) -> None:
    """Check that after `finish` exactly the letters with a mark are in the inbox."""
    letters = DeadLetters(here / "dead")
    replays = Replays(letters)
    replays.finish()
    entered = [path for path in (here / "inbox").glob("*") if not path.name.startswith(".")]
    marks = replays.marks()
    assert len(entered) == len(marks)
    for path in entered:
        assert pq.read_table(path).to_pylist() == [
            {"id": "m1", "headers": '{"priority":"high"}', "xml": b"<a"}
        ]


if __name__ == "__main__":
    kinds = {"outbox": (publish, see_published), "replay": (write_and_replay_letter, see_replayed)}
    print(kill_at_each_step(*kinds[sys.argv[1]]))
