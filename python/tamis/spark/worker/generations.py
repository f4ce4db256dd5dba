"""The generations that a Python worker keeps open from task to task: a small LRU cache by directory."""

from collections import OrderedDict

from tamis.generations.opener import OpenGeneration, open_generation
from tamis.model.matching import Generation

DIRECTORIES = 16
"""The number of directories whose generations a worker keeps open: several brokers may share the worker.

With fewer than there are brokers, a round of their batches would open each one again.
"""

_open: OrderedDict[str, OpenGeneration] = OrderedDict()


def opened(generation: Generation) -> OpenGeneration:
    """A generation, kept open from task to task; of a directory, one generation at a time."""
    known = _open.pop(generation.directory, None)
    if known is None or known.generation != generation or known.index.damaged:
        known = open_generation(generation, known)
    _open[generation.directory] = known
    while len(_open) > DIRECTORIES:
        _open.popitem(last=False)
    return known
