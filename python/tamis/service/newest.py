"""The newest generation, opened: what messages are tried against, as the job matches them."""

import threading
from dataclasses import dataclass

from tamis.engine import Index
from tamis.errors import IndexError, StoreError
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.settings import Settings


@dataclass(frozen=True, slots=True)
class Opened:
    """A generation, mapped."""

    number: int
    index: Index
    subscriptions: Subscriptions


class Newest:
    """Follows a store of generations."""

    def __init__(self, settings: Settings) -> None:
        self._store = Store(settings.generations)
        self._cache = settings.cache
        self._lock = threading.Lock()
        self._opened: Opened | None = None

    def open(self) -> Opened | None:
        """The newest one; None while there is none."""
        with self._lock:
            try:
                return self._open()
            except (StoreError, IndexError):
                # It was swept while we looked: there is a newer one.
                return self._open()

    def _open(self) -> Opened | None:
        number = self._store.newest()
        if number is None:
            return None
        if self._opened is None or self._opened.number != number:
            cache = None if self._cache is None else self._store.cache_in(self._cache)
            directory = self._store.fetch(number, cache)
            index = Index.open(directory, number)
            self._opened = Opened(number, index, Subscriptions.open(directory, number))
        return self._opened
