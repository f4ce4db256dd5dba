"""The generations that a Python worker has open."""

import os
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

from tamis.engine import Index
from tamis.model import Generation
from tamis.numbered import Subscriptions
from tamis.store import Store

DIRECTORIES = 4
"""So many directories' indexes a worker keeps open, those used last: jobs may take turns on it."""

CACHE_VARIABLE = "TAMIS_CACHE"
"""A host's own word on where its cache is."""

_open: OrderedDict[str, tuple[Generation, Index]] = OrderedDict()
_subscriptions: OrderedDict[str, tuple[Generation, Subscriptions]] = OrderedDict()


def opened(generation: Generation) -> Index:
    """The index of a generation, kept open from task to task; of a directory, one generation at a time.

    Its files are mapped: all workers of a host share one copy. Only the caches are a worker's own.
    """
    before = _open.pop(generation.directory, None)
    if before is not None and before[0] == generation:
        index = before[1]
    elif before is not None and replace(before[0], number=generation.number) == generation:
        index = before[1]
        local_directory(generation)
        index.advance(generation.number)
    else:
        index = Index.open(local_directory(generation), generation.number, cache_bytes=generation.cache_bytes)
    _open[generation.directory] = (generation, index)
    while len(_open) > DIRECTORIES:
        _open.popitem(last=False)
    return index


def opened_subscriptions(generation: Generation) -> Subscriptions:
    """The subscriptions of a generation by number, kept open like its index."""
    before = _subscriptions.pop(generation.directory, None)
    if before is not None and before[0] == generation:
        subscriptions = before[1]
    else:
        subscriptions = Subscriptions.open(local_directory(generation), generation.number)
    _subscriptions[generation.directory] = (generation, subscriptions)
    while len(_subscriptions) > DIRECTORIES:
        _subscriptions.popitem(last=False)
    return subscriptions


def local_directory(generation: Generation) -> Path:
    """Where the files of a generation are on this host: the one place that knows.

    A snapshot's are where they were written. A store's are copied to a cache if the host or the job names
    one, by whichever worker comes first.
    """
    if not generation.stored:
        return Path(generation.directory)
    cache = os.environ.get(CACHE_VARIABLE) or generation.cache
    directory = Store(generation.directory).fetch(generation.number, cache)
    if cache is not None:
        # A batch that is run again may need the generation before; who has mapped a file keeps it.
        Store(cache).sweep([generation.number - 1, generation.number])
    return directory
