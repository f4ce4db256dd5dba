"""The generations that a Python worker has open."""

from collections import OrderedDict
from pathlib import Path

from tamis.engine import Index
from tamis.model import Generation

DIRECTORIES = 4
"""So many directories' indexes a worker keeps open, those used last: jobs may take turns on it."""

_open: OrderedDict[str, tuple[Generation, Index]] = OrderedDict()


def opened(generation: Generation) -> Index:
    """The index of a generation, kept open from task to task; of a directory, one generation at a time.

    Its files are mapped: all workers of a host share one copy. Only the caches are a worker's own.
    """
    before = _open.pop(generation.directory, None)
    if before is not None and before[0] == generation:
        index = before[1]
    else:
        index = Index.open(local_directory(generation), generation.number, cache_bytes=generation.cache_bytes)
    _open[generation.directory] = (generation, index)
    while len(_open) > DIRECTORIES:
        _open.popitem(last=False)
    return index


def local_directory(generation: Generation) -> Path:
    """Where the files of a generation are on this host: the one place that knows."""
    return Path(generation.directory)
