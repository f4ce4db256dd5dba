"""Publishes generations of a catalog: compiles only the changes, and copies only new files to the store."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tamis.catalog import Catalog, Changes
from tamis.errors import GenerationError, StoreError
from tamis.generations.compiled import Compiled, compile_changes, open_compiled
from tamis.generations.damage import is_damage, is_lost
from tamis.generations.manifest import Manifest
from tamis.generations.sharded import compile_sharded, is_divided_as, open_latest
from tamis.generations.store import Store
from tamis.model.sample import Sampled
from tamis.model.sharding import Sharding
from tamis.model.version import Version
from tamis.network.routing_ports import Shown
from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import Lock

log = logging.getLogger(__name__)

KEPT_VERSIONS = 10_000
"""Versions of the catalog's log that are kept: a publisher further behind compiles the whole catalog."""

REFILE_MESSAGES = 32
"""Older segments are tried when the sample has this many messages, and whenever it has twice as many."""


class Publisher:
    """Compiles generations of a catalog and publishes them to a store.

    The messages of `sample` tell how selective the conditions of new segments are.

    `directory` is its working directory, which may be the store's own. If it is deleted, it is filled from
    the store again. `last` is the number of a generation that existed: new generations get higher numbers,
    even if the store has lost that one.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        directory: str | os.PathLike[str],
        last: int = -1,
        sample: Callable[[], Sequence[Sampled]] = tuple,
        sharding: Sharding | None = None,
    ) -> None:
        self._catalog = catalog
        self._sample = sample
        self._sharding = sharding
        self.store = store
        self._directory = Path(directory).absolute()
        self._lock = Lock(self._directory / ".publisher.lock")
        with STORE_ERRORS.at(self._directory):
            free = self._lock.try_acquire()
        if not free:
            reason = f"another process publishes from {self._directory}; stop it, or use another directory"
            raise StoreError("publisher-busy", reason)
        self._last = last
        self._base: Compiled | None = None
        """The newest generation, which changes are added to."""
        self._unreadable = -1
        """Generations up to this number cannot be continued."""
        self._version: Version | None = None
        """The catalog's version of the base; newer than its manifest's if no change since affected it."""

        self._filed_by = REFILE_MESSAGES // 2
        """Messages in the sample when it was last tried whether older segments are filed well by it."""

    def close(self) -> None:
        """Unlock the directory."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def subscriptions(self) -> int | None:
        """The number of subscriptions in the newest generation."""
        base = self._base
        return None if base is None else base.targets - base.manifest.routes

    @property
    def shown(self) -> Shown | None:
        """What the newest generation shows."""
        base, version = self._base, self._version
        if base is None or version is None:
            return None
        return Shown(base.manifest.catalog, version, base.manifest.tables)

    def refresh(self) -> int:
        """The number of a generation of the current catalog: the newest one, or a new one if that is older.

        If a file is damaged, all damaged files are removed. If that does not help, or if another version of
        tamis wrote the files, the whole catalog is compiled.
        """
        for remedy in (self.remove_damaged, self._compile_whole_catalog):
            try:
                return self._refresh()
            except (GenerationError, StoreError) as error:
                if not is_lost(error):
                    raise
                log.warning("the newest generation cannot be continued: %s", error)
                if is_damage(error):
                    remedy()
                else:
                    self._compile_whole_catalog()
        return self._refresh()

    def _refresh(self) -> int:
        while True:
            if self._base is None:
                self._base = self._open_newest()
            sample = self._sample()
            refiles = len(sample) >= 2 * self._filed_by
            with self._changes() as changes:
                if (
                    not refiles
                    and self._base is not None
                    and changes.since == changes.version
                    and self._base.manifest.number >= self._last
                ):
                    return self._base.manifest.number
                before = self._unreadable if self._base is None else self._base.manifest.number
                # If compiling fails, the index has some of the changes: the next refresh opens it again.
                base, self._base = self._base, None
                with STORE_ERRORS.at(self._directory):
                    compiled = self._compiled(base, changes, sample, refiles)
                if refiles:
                    self._filed_by = len(sample)
            if self._publish(before, compiled.manifest.number):
                self._delete_old(compiled.manifest.number, self._version, changes.version)
                self._base, self._version = compiled, changes.version
                self._last = max(self._last, compiled.manifest.number)
                return compiled.manifest.number

    def _compiled(
        self, base: Compiled | None, changes: Changes, sample: Sequence[Sampled], refiles: bool
    ) -> Compiled:
        if self._sharding is None:
            return compile_changes(self._directory, base, changes, self._last, sample, refiles=refiles)
        last = self._last
        return compile_sharded(self._directory, base, changes, last, self._sharding, sample)

    def has(self, number: int) -> bool:
        """Whether a generation exists in the store and can be opened."""
        try:
            self.store.manifest(number)
            self.store.fetch(number, self._directory)
            self._opened(number)
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
        kept = self._catalog.data.kept_files()
        for store in self._stores():
            removed = store.purge(kept)
            if removed:
                log.warning("%s: removed files that are damaged or unused: %s", store.url, ", ".join(removed))

    def sweep(self, keep: Iterable[int]) -> None:
        """Remove generations of the store except some and the newest, and files that nobody names."""
        self.store.sweep(keep, kept_files=self._catalog.data.kept_files)

    def _compile_whole_catalog(self) -> None:
        """Forget the newest generation: the next refresh compiles the whole catalog."""
        log.warning("compiling the whole catalog")
        self._note_newest()
        self._base = None
        self._unreadable = self._last

    def _note_newest(self) -> None:
        """Note the highest number of an existing generation: new ones get higher numbers."""
        numbers = [store.newest() for store in self._stores()]
        self._last = max(self._last, *(-1 if number is None else number for number in numbers))

    def _stores(self) -> list[Store]:
        """The working directory, and the store if it is another directory or URL."""
        own = Store(self._directory)
        return [own] if self.store.directory == self._directory else [own, self.store]

    def forget(self) -> None:
        """Close the base, so that the next refresh opens it again: the store may have lost files."""
        self._base = None

    def _open_newest(self) -> Compiled | None:
        """The newest generation, of the directory or of the store; None if there is none."""
        ours, theirs = Store(self._directory).newest(), self.store.newest()
        newest = max((number for number in (ours, theirs) if number is not None), default=None)
        if newest is None or newest <= self._unreadable:
            return None
        if newest == theirs:
            self.store.fetch(newest, self._directory)
        else:
            # Its publisher stopped after compiling and before publishing it.
            self.store.publish(self._directory, newest)
        base = self._opened(newest)
        self._version = base.manifest.version
        return base

    def _opened(self, number: int) -> Compiled:
        """A generation of the directory, as changes are compiled onto it."""
        manifest = Manifest.read(self._directory, number)
        if manifest.layout is None:
            return open_compiled(self._directory, number)
        return Compiled(manifest, open_latest(self._directory, manifest))

    @contextmanager
    def _changes(self) -> Iterator[Changes]:
        """The changes from the base to the current catalog."""
        base = self._base
        # Divided otherwise, it serves until the whole catalog is compiled.
        is_continued = base is not None and is_divided_as(base.manifest, self._sharding)
        since = self._version if is_continued else None
        with self._catalog.changes(since) as changes:
            if since is not None and changes.since is None:
                log.warning(
                    "the catalog's log does not have version %d of the store: the catalog was replaced or "
                    "restored, or its log was shortened; compiling the whole catalog",
                    since.count,
                )
            yield changes

    def _publish(self, before: int, number: int) -> bool:
        """Publish a generation; false if another publisher has published one since `before`."""
        if self.store.directory != self._directory:
            newest = self.store.newest()
            if newest is not None and newest > before and number > before:
                (self._directory / Manifest.name(number)).unlink()
                return False
        self.store.publish(self._directory, number)
        return True

    def _delete_old(self, number: int, before: Version | None, version: Version) -> None:
        """Delete older generations of the directory and, now and then, old entries of the catalog's log."""
        if self.store.directory != self._directory:
            Store(self._directory).sweep([number], young=0)
        passed = 0 if before is None else before.count
        if version.count // KEPT_VERSIONS > passed // KEPT_VERSIONS:
            self._catalog.compact(version.count - KEPT_VERSIONS)
