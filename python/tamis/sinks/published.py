"""A directory that batches are published to exactly once.

    data/<tenant>/<checkpoint>-<number>/<name>-<hash>.<form>     parts, written by many tasks
    manifests/<checkpoint>-<number>.json                         which parts a batch consists of

A batch is published when its manifest appears, which is an atomic rename. A part counts only if a manifest
names it. The name of a part contains a hash of its content, so a task that is retried, runs twice or outlives
its job never changes a published part.
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
"""The version of the manifest format."""

MANIFESTS, DATA = "manifests", "data"

SWEEP_AGE = 3600.0
"""Seconds. A sweep skips files that are younger: their batch may be in progress."""

MAX_NAME = 120
"""Longer names are truncated and get a hash: file systems allow 255 bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a batch, by its path below the root."""

    path: str
    tenant: str
    subscriber: str | None
    """Set if all rows belong to one subscriber."""
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Publication:
    """A published batch: the content of its manifest."""

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
        """Parse a manifest; `place` names it in errors."""
        try:
            value = json.loads(text)
            form = value["format"]
            if form == FORMAT:
                batch = Batch(value["checkpoint"], value["number"], value.get("plan", ""))
                parts = tuple(Part(**part) for part in value["parts"])
                return Publication(batch, value["form"], datetime.fromisoformat(value["published"]), parts)
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{place} is not a manifest: {error!r}; restore it from a copy, or move it away"
            raise SinkError("manifest-damaged", reason) from error
        raise SinkError("manifest-format", f"{place} has format {form}, not {FORMAT}: use a newer tamis")


class PublishedDirectory:
    """A directory of published batches, as the driver uses it."""

    def __init__(self, url: str | PathLike[str], form: str) -> None:
        """A directory, or a URL that `pyarrow.fs` supports; `form` is the file format of new parts."""
        self.place = place_at(url)
        self.url = self.place.url
        self.form = form

    def find(self, batch: Batch) -> Publication | None:
        """A published batch; None if it is not published."""
        return self._parsed(_manifest(batch))

    def publish(self, batch: Batch, parts: Iterable[Part]) -> Publication:
        """Publish the parts of a batch atomically; does nothing if the batch is published already.

        When this returns, the batch is durable, and other files of it are removed.
        """
        new = Publication(batch, self.form, datetime.now(UTC), tuple(sorted(parts, key=lambda p: p.path)))
        with self.place.locked():
            known = self.find(batch)
            kept = known or new
            found = self._list_files(kept)
            if known is None:
                for part in new.parts:
                    if found.get(part.path) != part.bytes:
                        reason = f"{self.url}/{part.path} was written by a worker and is not visible here"
                        raise SinkError("part-missing", f"{reason}: do all hosts see the same directory?")
            # Leftovers first, so that a published batch needs no more work.
            for path in sorted(found.keys() - {part.path for part in kept.parts}):
                self.place.remove(path)
            if known is None:
                self.place.put(MANIFESTS, f"{safe_name(str(batch))}.json", new.to_json())
        return kept

    def discard(self, batch: Batch) -> None:
        """Remove the parts of an unpublished batch."""
        with self.place.locked():
            if self.find(batch) is None:
                for tenant in self.place.folders(DATA):
                    self.place.remove_folder(f"{DATA}/{tenant}/{safe_name(str(batch))}")

    def published(self) -> Iterator[Publication]:
        """All batches, in the order of publication."""
        return self._read(name for _, name in self._in_order())

    def newest_first(self) -> Iterator[Publication]:
        """All batches, newest first."""
        return self._read(name for _, name in reversed(list(self._in_order())))

    def manifests(self) -> list[str]:
        """The names of all manifests, in the order of publication: a follower reads only the new ones."""
        return [name for _, name in self._in_order()]

    def read_manifest(self, manifest: str) -> Publication | None:
        """The batch of a manifest."""
        return self._parsed(f"{MANIFESTS}/{manifest}")

    def _read(self, names: Iterable[str]) -> Iterator[Publication]:
        for name in names:
            found = self.read_manifest(name)
            if found is not None:
                yield found

    def _in_order(self) -> Iterator[tuple[int, str]]:
        """Manifests ordered by time, and within a checkpoint by number, even if the clock was set back."""
        found = []
        for name, (_, changed) in self.place.files(MANIFESTS).items():
            checkpoint, _, number = name.removesuffix(".json").rpartition("-")
            if name.endswith(".json") and number.isdecimal():
                found.append((checkpoint, int(number), changed, name))
        streams = [_timed(list(group)) for _, group in groupby(sorted(found), key=lambda one: one[0])]
        return heapq.merge(*streams)

    def older_than(self, before: datetime) -> list[str]:
        """Manifests from before a time, except the last of each checkpoint: its batch may be run again."""
        named = [(changed, name) for changed, name in self._in_order()]
        last = {name.rpartition("-")[0]: name for _, name in named}
        limit = before.timestamp() * 1e9
        return [name for at, name in named if at < limit and name not in last.values()]

    def remove(self, manifest: str) -> None:
        """Remove a published batch. If a crash leaves parts behind, a sweep removes them."""
        with self.place.locked():
            known = self.read_manifest(manifest)
            if known is not None:
                self.place.remove(f"{MANIFESTS}/{manifest}")
                for folder in {_folder(part.tenant, known.batch) for part in known.parts}:
                    self.place.remove_folder(folder)

    def sweep(self, keep: Iterable[Batch], *, min_age: float = SWEEP_AGE) -> list[str]:
        """Remove the files of unpublished batches except those to keep; the paths removed.

        Nothing that is younger than `min_age` seconds is touched: another job may be writing it.
        """
        limit = (time.time() - min_age) * 1e9
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

    def _list_files(self, publication: Publication) -> dict[str, int]:
        """All files of a batch with their sizes. All attempts at a batch have the same tenants."""
        folders = {_folder(part.tenant, publication.batch) for part in publication.parts}
        return {
            f"{folder}/{name}": size
            for folder in folders
            for name, (size, _) in self.place.files(folder).items()
        }


class PartWriter:
    """Writes the parts of one task."""

    def __init__(self, directory: PublishedDirectory, batch: Batch) -> None:
        self._place = directory.place
        self._suffix = directory.form
        self._batch = batch
        self._done: list[Part] = []

    @contextmanager
    def new(self, tenant: str, name: str, subscriber: str | None = None) -> Iterator["OpenPart"]:
        """Open a new part; the caller also counts its rows."""
        folder = _folder(tenant, self._batch)

        def final(draft: Draft) -> str:
            return f"{safe_name(name)}-{draft.hash}.{self._suffix}"

        with self._place.drafted(folder, final) as draft:
            part = OpenPart(draft)
            yield part
        path = f"{folder}/{final(draft)}"
        self._done.append(Part(path, tenant, subscriber, part.rows, draft.size))

    def finish(self) -> list[Part]:
        """The parts that were written; they are durable now."""
        # All together: the system then flushes most of them at once.
        self._place.sync(part.path for part in self._done)
        return self._done


@dataclass(slots=True)
class OpenPart:
    """A part that is being written, and its number of rows."""

    file: Draft
    rows: int = 0


def safe_name(text: str) -> str:
    """A file name for a text: distinct texts have distinct names; readable if possible."""
    quoted = quote(text, safe="")
    if quoted.startswith((".", "_")):
        # Tools that list folders skip such names.
        quoted = f"%{ord(quoted[0]):02X}{quoted[1:]}"
    if quoted and len(quoted) <= MAX_NAME:
        return quoted
    # In quoted text, a percent sign never stands before a hyphen.
    return f"{quoted[: MAX_NAME // 2]}%-{blake2b(text.encode(), digest_size=16).hexdigest() if text else ''}"


def _folder(tenant: str, batch: Batch) -> str:
    return f"{DATA}/{safe_name(tenant)}/{safe_name(str(batch))}"


def _manifest(batch: Batch) -> str:
    return f"{MANIFESTS}/{safe_name(str(batch))}.json"


def _timed(group: Iterable[tuple[str, int, int, str]]) -> Iterator[tuple[int, str]]:
    latest = 0
    for _, _, changed, name in group:
        latest = max(latest, changed)
        yield latest, name
