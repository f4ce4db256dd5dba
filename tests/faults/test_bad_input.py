"""Ten thousand messages, a thousand of them broken in every way, through the job as people run it."""

import json
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tamis.catalog import Catalog
from tamis.model.subscription import NewSubscription
from tests.helpers.hostile_messages import HARMLESS, MESSAGES, SHORT_TEXTS, SUBSET
from tests.helpers.inbox_files import drop, drop_lines, drop_table
from tests.helpers.jobs import Folder, running, until_running
from tests.helpers.waiting import until

GOOD, BROKEN = 9_000, 1_000

SETTINGS = """
[[source]]
name = "inbox"
path = "inbox"
limits = { internal_subset = true, text = 1048576 }
"""

# Refused only by a source that allows no internal subset.
KINDS = {name: attack for name, attack in MESSAGES.items() if attack.code != "internal-subset"}

SMALL = 1_000
"""Bytes of an attack that can come many times in one batch."""

FILES = {
    "bomb.xml.gz": ("document-limit", b" " * (20 << 20)),
    "bomb.jsonl.gz": ("gzip-limit", b"\n" * (20 << 20)),
    "broken.parquet": ("bad-parquet", b"PAR1 and no more"),
    "what.txt": ("unknown-kind", b"<good/>"),
}
"""Files that no message can be made of."""

LINES = {
    "bad-json": b'{"id": "x", "xml": "<good/>"',
    "no-xml": b'{"id": "x", "text": "<good/>"}',
    "bad-id": b'{"id": [], "xml": "<good/>"}',
}
"""Lines that hold no message."""


class Publisher:
    """Fills an inbox, and remembers what has to become of each message."""

    def __init__(self, inbox: Path) -> None:
        self.inbox = inbox
        self.good: set[str] = set()
        self.codes: dict[str, str] = {}
        self.raw: dict[str, bytes] = {}

    def drop_files(self) -> None:
        """Put each kind of message into a separate file, and files without messages."""
        for number, (kind, attack) in enumerate(KINDS.items()):
            assert attack.make() == attack.make(), kind
            drop(self.inbox, f"attack-{number}.xml", attack.make())
            self.codes[f"attack-{number}.xml"] = attack.code
        for name, (code, content) in FILES.items():
            drop(self.inbox, name, content)
            # Of a file that can hold many messages, what is refused has a number.
            self.codes[name if ".xml" in name or name.endswith("txt") else f"{name}#1"] = code
        for number, message in enumerate(HARMLESS):
            drop(self.inbox, f"harmless-{number}.xml", message)
            self.good.add(f"harmless-{number}.xml")

    def drop_lines(self) -> None:
        """Lines that are broken, among good ones."""
        lines = []
        for number in range(300):
            code, line = list(LINES.items())[number // 10 % 3]
            if number % 10 == 5:
                lines.append(line)
                self.codes[f"mixed.jsonl#{number + 1}"] = code
            else:
                lines.append(json.dumps({"id": f"line-{number}", "xml": "<good>é</good>"}).encode())
                self.good.add(f"line-{number}")
        drop(self.inbox, "mixed.jsonl", b"\n".join(lines))

    def drop_tables(self) -> None:
        """The remaining attacks, byte by byte as they are, shuffled with good messages."""
        small = {name: attack.make() for name, attack in KINDS.items()}
        small = {name: message for name, message in small.items() if len(message) <= SMALL}
        attacks = islice(cycle(small.items()), BROKEN - len(self.codes))
        rows: list[tuple[str, bytes]] = []
        for number, (name, message) in enumerate(attacks):
            rows.append((f"row-{number}", message))
            self.codes[f"row-{number}"] = KINDS[name].code
            self.raw[f"row-{number}"] = message
        for number in range(GOOD - len(self.good) - 1_000):
            place = number * 7_919 % (len(rows) + 1)
            rows.insert(place, (f"good-{number}", b"<good n='%d'/>" % number))
            self.good.add(f"good-{number}")
        for part in range(4):
            ids, messages = zip(*rows[part::4], strict=True)
            columns: dict[str, list[Any]] = {"id": list(ids), "xml": list(messages)}
            drop_table(self.inbox, f"{part}.parquet", columns)
        texts = {f"text-{number}": f"<good n='{number}'/>" for number in range(1_000)}
        drop_lines(self.inbox, "texts.jsonl", texts)
        self.good.update(texts)


def test_every_broken_message_becomes_a_dead_letter_and_disturbs_no_other(tmp_path: Path) -> None:
    folder = Folder(tmp_path, SETTINGS)
    published = Publisher(tmp_path / "inbox")
    published.drop_files()
    published.drop_lines()
    published.drop_tables()
    assert (len(published.good), len(published.codes)) == (GOOD, BROKEN)
    assert {attack.limits for attack in KINDS.values()} <= {SUBSET, SHORT_TEXTS, type(SUBSET)()}
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "/good", id="q"))
    with running(folder) as job:
        until_running(job)
        until(lambda: folder.read() == GOOD + BROKEN, "all messages")
        assert job.stop() == 0
    counts = [record.counts for record in folder.records() if record.counts and record.counts.read]
    assert [(one.read, one.matched, one.dead) for one in counts] == [(GOOD + BROKEN, GOOD, BROKEN)]
    assert Counter(row["message"] for row in folder.deliveries()) == Counter(published.good)
    letters = {letter["id"]: letter for letter in folder.letters()}
    assert {name: letter["code"] for name, letter in letters.items()} == published.codes
    assert len(folder.letters()) == BROKEN
    assert {name: letters[name]["raw"] for name in published.raw} == published.raw
    # Where the reader refused it, the letter says at which spot.
    assert all(letters[name]["line"] >= 1 for name in published.raw)
    assert all(letter["reason"] for letter in letters.values())
