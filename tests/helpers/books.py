"""A model of what a job must deliver, while it is killed, messages arrive, and subscriptions and data change.

Afterwards both must agree: the published messages × the subscriptions that match them by lxml, at the
generation of their batch = the deliveries in the outbox, each once and with the right payload.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from lxml import etree

from tamis.catalog import Catalog
from tamis.generations.data_updater import DataUpdater
from tamis.generations.store import Store
from tamis.model.data_set import NewDataSet
from tamis.model.subscription import NewSubscription
from tamis.pipeline.batch_log import BatchRecord
from tests.helpers.jobs import Folder, Job

KILLS = int(os.environ.get("TAMIS_KILLS", "10"))
NAMES = "abcdef"


TEMPLATE = '<found n="{}"/>'

LOOK_UP = "for $v in //*[@n] return <e>{ collection('names')/row[n = $v/@n]/name }</e>"
"""A transformation that joins each element with local data."""


@dataclass(frozen=True)
class Subscribed:
    """A subscription: to messages by a path, or to a transformation of the selected elements."""

    revision: int
    path: str
    transforms: bool
    names: tuple[tuple[str, str], ...] | None = None
    """Of `LOOK_UP`: the local data, the names of some numbers."""

    def payload(self, xml: bytes) -> bytes | None:
        """The expected payload for a message, by lxml; None if it does not match."""
        selected: Any = etree.fromstring(xml).xpath(self.path)
        if self.names is not None:
            names = dict(self.names)
            found = (names.get(element.get("n")) for element in selected)
            return "".join(f"<e><name>{name}</name></e>" if name else "<e/>" for name in found).encode()
        if not selected:
            return None
        made = "".join(TEMPLATE.format(element.get("n")) for element in selected)
        return made.encode() if self.transforms else xml


class Books:
    """The published messages, and the active subscriptions at each version of the catalog."""

    def __init__(self, folder: Folder, catalog: Catalog, seed: int) -> None:
        self.folder = folder
        self.catalog = catalog
        self.random = random.Random(seed)
        self.messages: dict[str, bytes] = {}
        self.broken: set[str] = set()
        self.active: dict[str, Subscribed] = {}
        self.at: dict[int, dict[str, Subscribed]] = {}
        """The active subscriptions at each version of the catalog."""
        self.noted: dict[int, datetime] = {}
        """A time at which each version existed for certain."""
        self.subscribe("all", "//*")
        catalog.data.create(NewDataSet("names", key="/row/n"))
        self.updater = DataUpdater(catalog.data, Store(folder.state / "generations"), folder.path / "build")
        self.updater.replace("names", [_row("1", "one")])
        added = catalog.add(NewSubscription("somebody", LOOK_UP, id="names"))
        self.active["names"] = Subscribed(added.revision, "//*[@n]", True, (("1", "one"),))
        self.note()

    def subscribe(self, name: str, path: str, *, transforms: bool = False) -> None:
        query = f"for $v in {path} return {TEMPLATE.format('{ $v/@n }')}" if transforms else path
        added = self.catalog.add(NewSubscription("somebody", query, id=name))
        self.active[name] = Subscribed(added.revision, path, transforms)
        self.note()

    def change(self) -> None:
        """Add or remove a random subscription, and change the local data."""
        self.change_data()
        names = sorted(self.active.keys() - {"all", "names"})
        if names and self.random.random() < 0.4:
            name = self.random.choice(names)
            self.catalog.remove(name)
            del self.active[name]
            self.note()
        else:
            test = f"//{self.random.choice(NAMES)}[@n > {self.random.randrange(10)}]"
            name = f"s{self.random.randrange(10**9)}"
            self.subscribe(name, test, transforms=self.random.random() < 0.5)

    def change_data(self) -> None:
        """Replace or remove a random record, or all of them."""
        before = self.active["names"]
        names, number = dict(before.names or ()), str(self.random.randrange(10))
        if number in names and self.random.random() < 0.5:
            del names[number]
            self.updater.change("names", deletes=[number])
        else:
            names[number] = f"name{self.random.randrange(10**9)}"
            if self.random.random() < 0.3:
                self.updater.replace("names", [_row(*one) for one in names.items()])
            else:
                self.updater.change("names", upserts=[_row(number, names[number])])
        self.active["names"] = replace(before, names=tuple(sorted(names.items())))
        self.note()

    def note(self) -> None:
        version = self.catalog.version.count
        self.at[version] = dict(self.active)
        self.noted[version] = datetime.now(UTC)

    def publish(self, count: int) -> None:
        for name, xml in self.made(count):
            self.folder.publish(name, xml)

    def made(self, count: int) -> list[tuple[str, bytes]]:
        """New messages, recorded in the model; one in ten is broken, and at least one."""
        surely = self.random.randrange(count)
        return [self._one(broken=at == surely or self.random.random() < 0.1) for at in range(count)]

    def _one(self, *, broken: bool) -> tuple[str, bytes]:
        name = f"m{len(self.messages) + len(self.broken)}.xml"
        inner = "".join(f"<{self.random.choice(NAMES)} n='{self.random.randrange(10)}'/>" for _ in range(4))
        if broken:
            self.broken.add(name)
            return name, f"<r>{inner}".encode()
        self.messages[name] = f"<r>{inner}</r>".encode()
        return name, self.messages[name]

    def check(self, source: str = "inbox") -> None:
        """Check that the deliveries and dead letters are exactly the expected ones."""
        rows = self.folder.deliveries()
        counts = Counter((row["message"], row["subscription"]) for row in rows)
        assert [key for key, count in counts.items() if count > 1] == []
        generations: dict[str, set[int]] = {}
        for row in rows:
            generations.setdefault(row["message"], set()).add(row["generation"])
        assert generations.keys() == self.messages.keys()
        for message, xml in self.messages.items():
            (generation,) = generations[message]
            active = self.at[self.folder.versions[generation]]
            wanted = {
                (name, asked.revision, payload)
                for name, asked in active.items()
                if (payload := asked.payload(xml)) is not None
            }
            found = {
                (row["subscription"], row["revision"], row["payload"])
                for row in rows
                if row["message"] == message
            }
            assert found == wanted, message
        letters = Counter(letter["id"] for letter in self.folder.letters())
        assert letters == Counter(self.broken)
        records = self.folder.records(source)
        assert [record.generation for record in records] == sorted(r.generation for r in records)
        for record in records:
            assert record.counts is not None
            assert record.counts.read == record.counts.matched + record.counts.unmatched + record.counts.dead
        for before, record in pairwise(records):
            self.check_generation(before, record)

    def check_generation(self, before: BatchRecord, record: BatchRecord) -> None:
        """Check that a batch uses a generation that is not older than the begin of the previous batch."""
        begun = before.time
        published = [number for number, when in self.folder.published.items() if when < begun]
        assert record.generation >= max(published, default=0)
        known = max(version for version, when in self.noted.items() if when < begun)
        shown = self.at[self.folder.versions[record.generation]]
        # Versions with the same subscriptions share a generation.
        assert any(shown == self.at[version] for version in self.at if version >= known)


def _row(number: str, name: str) -> bytes:
    return f"<row><n>{number}</n><name>{name}</name></row>".encode()


def phases(folder: Folder, source: str = "inbox") -> list[Callable[[], bool]]:
    """The phases of a batch, recognised by the files in the folder, at which the job is killed."""
    begun, done = len(folder.records(source)), _done(folder, source)
    parts, manifests = _files(folder, "outbox/data"), _files(folder, "outbox/manifests")
    letters = _files(folder, "dead-letters/manifests")
    return [
        lambda: True,
        lambda: len(folder.records(source)) > begun,
        lambda: _files(folder, "outbox/data") > parts,
        lambda: _files(folder, "outbox/manifests") > manifests,
        lambda: _files(folder, "dead-letters/manifests") > letters,
        lambda: _done(folder, source) > done,
    ]


def _done(folder: Folder, source: str) -> int:
    return sum(record.counts is not None for record in folder.records(source))


def _files(folder: Folder, name: str) -> int:
    return sum(1 for path in (folder.path / name).rglob("*") if path.is_file())


def counted(what: str) -> Iterator[int]:
    """The number of each kill; prints a line for each (`pytest -s` shows them)."""
    for kill in range(KILLS):
        print(f"{what}: kill {kill + 1} of {KILLS}", flush=True)
        yield kill


def strike(job: Job, kill: int) -> None:
    """Kill the job; every fourth time, kill only its workers first, whose tasks Spark retries."""
    if kill % 4 == 3:
        job.kill_workers()
    job.kill()
