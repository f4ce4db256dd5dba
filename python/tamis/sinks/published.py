"""A directory that batches are published to exactly once.

    data/<tenant>/<checkpoint>-<number>/<name>-<hash>.<form>     parts, written by many tasks
    manifests/<checkpoint>-<number>.json                         which parts a batch consists of

A batch is there once its manifest is, and a part counts only if a manifest names it. The name of a part has a
hash of what it holds: whatever a task that is retried, runs twice or outlives its job still writes, it
never changes a part that counts.
"""

import heapq
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from os import PathLike
from urllib.parse import quote

from tamis.errors import SinkError
from tamis.model.batch import Batch
from tamis.storage.files import DRAFT
from tamis.storage.place import Draft, place_at

FORMAT = 1
"""Changes with the meaning of a manifest."""

MANIFESTS, DATA = "manifests", "data"

YOUNG = 3600.0
"""Seconds for which a sweep leaves files alone: their batch may be on its way."""

LONGEST = 120
"""A name of more characters is cut, and told from others by a hash: file systems know 255."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a batch, by its path from the root."""

    path: str
    tenant: str
    subscriber: str | None
    """Whose it is; None if it holds rows of many."""
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Publication:
    """A batch that is published: what its manifest says."""

    batch: Batch
    form: str
    published: datetime
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def to_json(self) -> bytes:
        value = {
            "format": FORMAT,
            **asdict(self.batch),
            "form": self.form,
            "published": self.published.isoformat(timespec="microseconds"),
            "rows": self.rows,
            "parts": [asdict(part) for part in self.parts],
        }
        return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"

    @staticmethod
    def parse(text: bytes, place: str) -> "Publication":
        """What a manifest says; `place` names it in errors."""
        try:
            value = json.loads(text)
            form = value["format"]
            if form == FORMAT:
                batch = Batch(value["checkpoint"], value["number"], value.get("plan", ""))
                parts = tuple(Part(**part) for part in value["parts"])
                return Publication(batch, value["form"], datetime.fromisoformat(value["published"]), parts)
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{place} is no manifest: {error!r}; restore it from a copy, or move it away"
            raise SinkError("manifest-damaged", reason) from error
        raise SinkError("manifest-format", f"{place} has format {form}, not {FORMAT}: use a newer tamis")


class PublishedDirectory:
    """The driver's view: which batches there are, and how one is added."""

    def __init__(self, url: str | PathLike[str], form: str) -> None:
        """A directory, or a URL that `pyarrow.fs` knows; `form` is what new parts are written in."""
        self.place = place_at(url)
        self.url = self.place.url
        self.form = form

    def find(self, batch: Batch) -> Publication | None:
        """A batch, if it is published."""
        return self._parsed(_manifest(batch))

    def publish(self, batch: Batch, parts: Iterable[Part]) -> Publication:
        """Make parts count, all at once; nothing if the batch is published already.

        When this returns, what is published is safe, and other files of the batch are gone.
        """
        new = Publication(batch, self.form, datetime.now(UTC), tuple(sorted(parts, key=lambda p: p.path)))
        with self.place.locked():
            known = self.find(batch)
            kept = known or new
            found = self._found(kept)
            if known is None:
                for part in new.parts:
                    if found.get(part.path) != part.bytes:
                        reason = f"{self.url}/{part.path} was written by a worker and is not here"
                        raise SinkError("part-missing", f"{reason}: do all hosts see the same directory?")
            # Leftovers first, so that a batch which is published needs no more work.
            for path in sorted(found.keys() - {part.path for part in kept.parts}):
                self.place.remove(path)
            if known is None:
                self.place.put(MANIFESTS, f"{safe_name(str(batch))}.json", new.to_json())
        return kept

    def discard(self, batch: Batch) -> None:
        """Remove what was written of a batch that is not published."""
        with self.place.locked():
            if self.find(batch) is None:
                for tenant in self.place.folders(DATA):
                    self.place.remove_folder(f"{DATA}/{tenant}/{safe_name(str(batch))}")

    def published(self) -> Iterator[Publication]:
        """All batches, in the order in which they were published."""
        return self._read(name for _, name in self._in_order())

    def newest(self) -> Iterator[Publication]:
        """All batches, the last one first."""
        return self._read(name for _, name in reversed(list(self._in_order())))

    def manifests(self) -> list[str]:
        """The names of all manifests, in the order of `published`: who follows has seen most of them."""
        return [name for _, name in self._in_order()]

    def named(self, manifest: str) -> Publication | None:
        """The batch that a manifest tells of."""
        return self._parsed(f"{MANIFESTS}/{manifest}")

    def _read(self, names: Iterable[str]) -> Iterator[Publication]:
        for name in names:
            found = self.named(name)
            if found is not None:
                yield found

    def _in_order(self) -> Iterator[tuple[int, str]]:
        """The names of manifests by time, and those of one checkpoint by number, whatever the clock did."""
        known = []
        for name, (_, changed) in self.place.files(MANIFESTS).items():
            checkpoint, _, number = name.removesuffix(".json").rpartition("-")
            if name.endswith(".json") and number.isdecimal():
                known.append((checkpoint, int(number), changed, name))
        streams = [_timed(list(group)) for _, group in groupby(sorted(known), key=lambda one: one[0])]
        return heapq.merge(*streams)

    def older(self, before: datetime) -> list[str]:
        """Manifests from before a time, but for the last of each checkpoint: its batch may be run again."""
        named = [(changed, name) for changed, name in self._in_order()]
        last = {name.rpartition("-")[0]: name for _, name in named}
        limit = before.timestamp() * 1e9
        return [name for at, name in named if at < limit and name not in last.values()]

    def remove(self, manifest: str) -> None:
        """Let go of a batch that is published. What a crash leaves of its parts is left to a sweep."""
        with self.place.locked():
            known = self.named(manifest)
            if known is not None:
                self.place.remove(f"{MANIFESTS}/{manifest}")
                for folder in {_folder(part.tenant, known.batch) for part in known.parts}:
                    self.place.remove_folder(folder)

    def sweep(self, keep: Iterable[Batch], *, young: float = YOUNG) -> list[str]:
        """Remove what batches left that were never published, but for those to keep; what was removed.

        Nothing that is younger than `young` seconds is touched: another job may be writing it.
        """
        limit = (time.time() - young) * 1e9
        with self.place.locked():
            manifests = self.place.files(MANIFESTS)
            drafts = [name for name, (_, at) in manifests.items() if name.startswith(DRAFT) and at <= limit]
            gone = [f"{MANIFESTS}/{name}" for name in drafts]
            for path in gone:
                self.place.remove(path)
            needed = {name.removesuffix(".json") for name in manifests} | {safe_name(str(b)) for b in keep}
            for tenant in self.place.folders(DATA):
                for name in self.place.folders(f"{DATA}/{tenant}"):
                    folder = f"{DATA}/{tenant}/{name}"
                    times = [at for _, at in self.place.files(folder).values()] if name not in needed else []
                    if times and max(times) <= limit:
                        self.place.remove_folder(folder)
                        gone.append(folder)
        return gone

    def _parsed(self, path: str) -> Publication | None:
        text = self.place.read(path)
        return None if text is None else Publication.parse(text, f"{self.url}/{path}")

    def _found(self, publication: Publication) -> dict[str, int]:
        """All files that there are of a batch, with their sizes. All attempts at it have the same tenants."""
        folders = {_folder(part.tenant, publication.batch) for part in publication.parts}
        return {
            f"{folder}/{name}": size
            for folder in folders
            for name, (size, _) in self.place.files(folder).items()
        }


class Parts:
    """What one task writes of a batch."""

    def __init__(self, directory: PublishedDirectory, batch: Batch) -> None:
        self._place = directory.place
        self._suffix = directory.form
        self._batch = batch
        self._done: list[Part] = []

    @contextmanager
    def new(self, tenant: str, name: str, subscriber: str | None = None) -> Iterator["Rows"]:
        """A part to write; who writes also counts the rows."""
        folder = _folder(tenant, self._batch)

        def final(draft: Draft) -> str:
            return f"{safe_name(name)}-{draft.hash}.{self._suffix}"

        with self._place.drafted(folder, final) as draft:
            part = Rows(draft)
            yield part
        path = f"{folder}/{final(draft)}"
        self._done.append(Part(path, tenant, subscriber, part.rows, draft.size))

    def finish(self) -> list[Part]:
        """All that were written; they are safe now."""
        # Together and late: the system then writes most of them at once.
        self._place.sync(part.path for part in self._done)
        return self._done


@dataclass(slots=True)
class Rows:
    """A file that is being written, and how many rows it has."""

    file: Draft
    rows: int = 0


def safe_name(text: str) -> str:
    """A name for a file: another for every text, readable where that is possible."""
    quoted = quote(text, safe="")
    if quoted.startswith((".", "_")):
        # Such names are hidden, or have a meaning to those who list folders.
        quoted = f"%{ord(quoted[0]):02X}{quoted[1:]}"
    if quoted and len(quoted) <= LONGEST:
        return quoted
    # No quoted text has a percent sign before a hyphen.
    return f"{quoted[: LONGEST // 2]}%-{blake2b(text.encode(), digest_size=16).hexdigest() if text else ''}"


def _folder(tenant: str, batch: Batch) -> str:
    return f"{DATA}/{safe_name(tenant)}/{safe_name(str(batch))}"


def _manifest(batch: Batch) -> str:
    return f"{MANIFESTS}/{safe_name(str(batch))}.json"


def _timed(group: Iterable[tuple[str, int, int, str]]) -> Iterator[tuple[int, str]]:
    latest = 0
    for _, _, changed, name in group:
        latest = max(latest, changed)
        yield latest, name
