"""From the catalog to generations: only what changed is compiled, and only new files are shipped."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from tamis.catalog import Catalog, Changes
from tamis.engine import Index, check
from tamis.errors import GenerationError, QueryError, StoreError
from tamis.generations import numbered
from tamis.generations.damage import is_damage, is_lost
from tamis.generations.manifest import File, Manifest, kernel_files, renumber
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.model.version import Version
from tamis.network.routing_ports import Shown
from tamis.network.tables import EVERYTHING
from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import Lock

log = logging.getLogger(__name__)

LOAD_ROWS = 1_000_000
"""So many subscriptions are compiled into one segment, and held in memory, at once."""

KEPT_VERSIONS = 10_000
"""So far back, at least, can another publisher be without starting from nothing."""


@dataclass(frozen=True, slots=True)
class _Base:
    """The generation to go on from."""

    manifest: Manifest
    index: Index


class Publisher:
    """Makes generations of a catalog and publishes them to a store.

    `directory` is a place to work in. Nothing is lost with it: it is taken from the store again.
    It may be the store's own directory. `last` is a generation that was there for certain: should the
    store have lost it, numbers go on from there all the same.
    """

    def __init__(
        self, catalog: Catalog, store: Store, directory: str | os.PathLike[str], last: int = -1
    ) -> None:
        self._catalog = catalog
        self.store = store
        self._directory = Path(directory).absolute()
        self._lock = Lock(self._directory / ".publisher.lock")
        with STORE_ERRORS.at(self._directory):
            free = self._lock.try_acquire()
        if not free:
            reason = f"another process publishes from {self._directory}; stop it, or take another directory"
            raise StoreError("publisher-busy", reason)
        self._last = last
        self._base: _Base | None = None
        self._unreadable = -1
        """Generations up to this number are not gone on from."""
        self._version: Version | None = None
        """The catalog's version that the base shows; later than its manifest's if nothing mattered."""

    def close(self) -> None:
        """Let others publish from the directory."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def subscriptions(self) -> int | None:
        """How many subscriptions the generation has that was made or found last."""
        base = self._base
        return None if base is None else base.index.stats().targets - base.manifest.routes

    @property
    def shown(self) -> Shown | None:
        """What the generation shows that was made or found last."""
        base, version = self._base, self._version
        if base is None or version is None:
            return None
        return Shown(base.manifest.catalog, version, base.manifest.tables)

    def refresh(self) -> int:
        """The number of the generation that shows the catalog as it is: the newest, or a new one.

        If that fails because a file is damaged, what is damaged is removed. If that does not help, or another
        version of tamis wrote the files, all is compiled anew.
        """
        for remedy in (self.remove_damaged, self._begin_anew):
            try:
                return self._refresh()
            except (GenerationError, StoreError) as error:
                if not is_lost(error):
                    raise
                log.warning("the newest generation cannot be continued: %s", error)
                if is_damage(error):
                    remedy()
                else:
                    self._begin_anew()
        return self._refresh()

    def _refresh(self) -> int:
        while True:
            if self._base is None:
                self._base = self._opened()
            with self._changes() as changes:
                if (
                    self._base is not None
                    and changes.since == changes.version
                    and self._base.manifest.number >= self._last
                ):
                    return self._base.manifest.number
                before = self._unreadable if self._base is None else self._base.manifest.number
                with STORE_ERRORS.at(self._directory):
                    made = self._made(changes)
            if self._published(before, made.manifest.number):
                self._tidy(made.manifest.number, self._version, changes.version)
                self._base, self._version = made, changes.version
                self._last = max(self._last, made.manifest.number)
                return made.manifest.number

    def has(self, number: int) -> bool:
        """Whether a generation can still be opened."""
        try:
            self.store.manifest(number)
            self.store.fetch(number, self._directory)
            self._open(number)
        except (GenerationError, StoreError) as error:
            if not is_lost(error):
                raise
            log.warning("generation %d cannot be opened: %s", number, error)
            return False
        return True

    def remove_damaged(self) -> None:
        """Remove damaged generations from the directory and from the store. Reads all their files."""
        self._note_newest()
        self._base = None
        for store in self._stores():
            removed = store.purge()
            if removed:
                log.warning(
                    "%s: removed what is damaged or of no generation: %s", store.url, ", ".join(removed)
                )

    def _begin_anew(self) -> None:
        """Compile the whole catalog: the newest generation cannot be continued."""
        log.warning("all is compiled anew")
        self._note_newest()
        self._base = None
        self._unreadable = self._last

    def _note_newest(self) -> None:
        """New generations get higher numbers than any that was there."""
        numbers = [store.newest() for store in self._stores()]
        self._last = max(self._last, *(-1 if number is None else number for number in numbers))

    def _stores(self) -> list[Store]:
        """The directory, and the store if it is another place."""
        own = Store(self._directory)
        return [own] if self.store.directory == self._directory else [own, self.store]

    def forget(self) -> None:
        """Look at the store again before the next generation is made: it may have lost what it had."""
        self._base = None

    def _opened(self) -> _Base | None:
        """The newest generation, of the directory or of the store; None if there is none."""
        ours, theirs = Store(self._directory).newest(), self.store.newest()
        newest = max((number for number in (ours, theirs) if number is not None), default=None)
        if newest is None or newest <= self._unreadable:
            return None
        if newest == theirs:
            self.store.fetch(newest, self._directory)
        else:
            # Made, but not published: whoever made it was stopped in between.
            self.store.publish(self._directory, newest)
        manifest = Manifest.read(self._directory, newest)
        base = _Base(manifest, self._open(newest))
        self._version = manifest.version
        return base

    @contextmanager
    def _changes(self) -> Iterator[Changes]:
        """What leads from the base to the catalog as it is."""
        since = None if self._base is None else self._version
        with self._catalog.changes(since) as changes:
            if since is not None and changes.since is None:
                log.warning(
                    "the catalog does not know version %d as the store has it: it is another one, was "
                    "restored, or has forgotten; all is compiled anew",
                    since.count,
                )
            yield changes

    def _made(self, changes: Changes) -> _Base:
        """A generation in the directory, from the base and what changed since."""
        # What fails half-way leaves an index that is neither old nor new: it is opened again.
        base, self._base = self._base, None
        before = None
        index = Index()
        if base is not None and changes.since is not None:
            before, index = base.manifest, base.index
        for number in changes.removed:
            index.remove(number)
        added = []
        for batch in _gathered(changes.added):
            _load(index, batch)
            added.append(batch.select(numbered.COLUMNS))
        number = index.snapshot(self._directory)
        tables = {link: one.hash for link, one in changes.tables.items() if one.hash != EVERYTHING}
        if before is not None and self._last <= number == before.number and before.tables == tables:
            return _Base(before, index)
        # The same queries under the same numbers need not be of the same subscriptions.
        if number <= self._last or (self._directory / Manifest.name(number)).exists():
            number = renumber(self._directory, number, max(number, self._last) + 1)
        subscriptions, removed = numbered.update(self._directory, before, changes.removed, added)
        names = [*kernel_files(self._directory, number), *subscriptions, *([removed] if removed else [])]
        known = {} if before is None else before.files
        files = {name: known.get(name) or File.of(self._directory / name) for name in names}
        manifest = Manifest(
            number, changes.catalog, changes.version, subscriptions, removed, files, tables, changes.routes
        )
        manifest.write(self._directory)
        # What was compiled here is in memory; the files are mapped, as everybody else does.
        return _Base(manifest, self._open(number, index))

    def _open(self, number: int, beside: Index | None = None) -> Index:
        """The index of a generation of the directory; its subscriptions must be readable too."""
        Subscriptions.open(self._directory, number)
        return Index.open(self._directory, number, beside=beside)

    def _published(self, before: int, number: int) -> bool:
        """Publish a generation of the directory; false if somebody else published since the one before."""
        if self.store.directory != self._directory:
            theirs = self.store.newest()
            if theirs is not None and theirs > before and number > before:
                (self._directory / Manifest.name(number)).unlink()
                return False
        self.store.publish(self._directory, number)
        return True

    def _tidy(self, number: int, before: Version | None, version: Version) -> None:
        """Keep no more than is needed to go on; of the catalog's log, now and then."""
        if self.store.directory != self._directory:
            Store(self._directory).sweep([number], young=0)
        passed = 0 if before is None else before.count
        if version.count // KEPT_VERSIONS > passed // KEPT_VERSIONS:
            self._catalog.compact(version.count - KEPT_VERSIONS)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Few large batches of many."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(one.num_rows for one in some) >= LOAD_ROWS:
            yield numbered.concatenated(some)
            some = []
    if some:
        yield numbered.concatenated(some)


def _load(index: Index, batch: pa.RecordBatch) -> None:
    """Compile subscriptions; one that is no query any more is reported and left out."""
    columns = {"target": batch.column("number"), "query": _plain(batch), "tenant": batch.column("tenant")}
    for refused in index.load(pa.record_batch(columns)).to_pylist():
        row = batch.slice(refused["row"], 1).to_pylist()[0]
        refusal = (row["id"], row["tenant"], refused["code"], refused["reason"])
        log.warning("subscription %s of tenant %r is left out: %s: %s", *refusal)


def _plain(batch: pa.RecordBatch) -> "pa.Array[Any]":
    """Queries that need no prefixes, so that one load does for all: in canonical texts names are expanded."""
    prefixes = batch.column("prefixes")
    maps = {text: json.loads(str(text)) for text in prefixes.unique().to_pylist()}
    if not any(maps.values()):
        return batch.column("query")
    queries: list[Any] = batch.column("query").to_pylist()
    for at, text in enumerate(prefixes.to_pylist()):
        if maps[text]:
            # What is refused stays as it is, and is refused again by the index.
            with suppress(QueryError):
                queries[at] = check(queries[at], maps[text]).canonical
    return pa.array(queries, pa.large_string())
