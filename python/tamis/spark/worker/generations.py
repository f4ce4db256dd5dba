"""The generations that a Python worker has open."""

import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from tamis.engine import Index
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.model.matching import Generation

DIRECTORIES = 4
"""So many directories' indexes a worker keeps open, those used last: jobs may take turns on it."""

CACHE_VARIABLE = "TAMIS_CACHE"
"""A host's own word on where its cache is."""


@dataclass(slots=True)
class _Open:
    """What is open of a directory."""

    generation: Generation
    index: Index
    subscriptions: Subscriptions | None = None
    """By number; opened when they are first asked for, for a snapshot has none."""


_open: OrderedDict[str, _Open] = OrderedDict()


def opened(generation: Generation) -> Index:
    """The index of a generation, kept open from task to task; of a directory, one generation at a time.

    Its files are mapped: all workers of a host share one copy. Only the caches are a worker's own.
    """
    return _opened(generation).index


def opened_subscriptions(generation: Generation) -> Subscriptions:
    """The subscriptions of a generation by number, kept open like its index."""
    known = _opened(generation)
    if known.subscriptions is None:
        known.subscriptions = Subscriptions.open(local_directory(generation), generation.number)
    return known.subscriptions


def _opened(generation: Generation) -> _Open:
    known = _open.pop(generation.directory, None)
    if known is None or replace(known.generation, number=generation.number) != generation:
        directory = local_directory(generation)
        index = Index.open(directory, generation.number, cache_bytes=generation.cache_bytes)
        known = _Open(generation, index)
    elif known.generation != generation:
        local_directory(generation)
        known.index.advance(generation.number)
        known = _Open(generation, known.index)
    _open[generation.directory] = known
    while len(_open) > DIRECTORIES:
        _open.popitem(last=False)
    return known


def local_directory(generation: Generation) -> Path:
    """Where the files of a generation are on this host: the one place that knows.

    A snapshot's are where they were written. A store's are copied to a cache if the host or the job names
    one, by whichever worker comes first.
    """
    if not generation.stored:
        return Path(generation.directory)
    store = Store(generation.directory)
    folder = os.environ.get(CACHE_VARIABLE) or generation.cache
    if folder is None:
        return store.fetch(generation.number)
    directory = store.fetch(generation.number, store.cache_in(folder))
    # A batch that is run again may need the generation before; who has mapped a file keeps it.
    Store(directory).sweep([generation.number - 1, generation.number])
    return directory
