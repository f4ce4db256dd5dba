"""The newest generation of the store: what messages are tried against, as the job matches them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.errors import GenerationError, StoreError
from tamis.generations.opener import OpenGeneration, open_generation
from tamis.generations.store import Store
from tamis.model.matching import Generation
from tamis.settings import Settings


class Newest:
    """Follows a store of generations. Requests of several threads share the open one.

    A newer generation advances the index, which keeps its caches. Nobody waits for that: while requests
    still match against the old generation, the new one is opened beside it.
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
            taken = self._current
            self._users += 1
        try:
            yield taken
        finally:
            with self._lock:
                if taken is self._current:
                    self._users -= 1

    def _refresh(self) -> None:
        number = self._store.newest()
        current = self._current
        if current is not None and current.generation.number == number and not current.index.damaged:
            return
        # What fails half-way leaves an index that is neither old nor new: it is opened again.
        self._current = None
        if number is None:
            return
        generation = Generation(self._store.url, number, stored=True, cache=self._cache)
        opened = open_generation(generation, None if self._users else current, beside=current)
        # At once: the files may be swept as soon as there is a newer generation.
        _ = opened.subscriptions
        self._current, self._users = opened, 0
