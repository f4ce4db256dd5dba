"""The newest generation of the store, kept open: tried messages are matched against it, as the job does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.errors import GenerationError, StoreError
from tamis.generations.opener import OpenGeneration, open_generation
from tamis.generations.store import Store
from tamis.model.matching import Generation
from tamis.settings import Settings


class Newest:
    """The newest generation of a store. Requests of several threads share the open index.

    A newer generation advances the index, which keeps its caches. If requests still match against the old
    generation, the new one is opened beside it instead, so that no request waits.
    """

    def __init__(self, settings: Settings) -> None:
        self._store = Store(settings.generations)
        self._cache = settings.cache
        self._lock = threading.Lock()
        self._current: OpenGeneration | None = None
        self._users = 0
        """Requests that match against the current generation."""

    @contextmanager
    def opened(self) -> Iterator[OpenGeneration | None]:
        """The newest generation for the length of a request; None while there is none."""
        with self._lock:
            try:
                self._refresh()
            except (StoreError, GenerationError):
                # It was swept in the meantime: there is a newer one.
                self._refresh()
            current = self._current
            self._users += 1
        try:
            yield current
        finally:
            with self._lock:
                if current is self._current:
                    self._users -= 1

    def _refresh(self) -> None:
        number = self._store.newest()
        current = self._current
        if current is not None and current.generation.number == number and not current.index.damaged:
            return
        # After a failure the index may be half advanced: it is opened again.
        self._current = None
        if number is None:
            return
        generation = Generation(self._store.url, number, stored=True, cache=self._cache)
        opened = open_generation(generation, None if self._users else current, beside=current)
        # Opened now, not on first use: its files may be swept as soon as there is a newer generation.
        _ = opened.subscriptions
        self._current, self._users = opened, 0
