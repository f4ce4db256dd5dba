"""Opens generations: finds their files on this host, or fetches them from a store, and maps them.

The next generation of the same place is opened by advancing the index: the segments that both share stay
mapped and the caches of matchers stay warm, so that only what is new has to be learned.
"""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tamis.engine import Index
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.model.matching import Generation

CACHE_VARIABLE = "TAMIS_CACHE"
"""The environment variable by which a host names its own cache folder."""


@dataclass
class OpenGeneration:
    """A generation whose files are mapped: all processes of a host share one copy."""

    generation: Generation
    index: Index

    @cached_property
    def subscriptions(self) -> Subscriptions:
        """Its subscriptions by number; opened when they are first needed, for a snapshot has none."""
        return Subscriptions.open(local_directory(self.generation), self.generation.number)


def open_generation(generation: Generation, previous: OpenGeneration | None = None) -> OpenGeneration:
    """Open a generation, by advancing the index of `previous` if that is of the same place.

    `previous` must not be used afterwards.
    """
    directory = local_directory(generation)
    if previous is not None and replace(previous.generation, number=generation.number) == generation:
        previous.index.advance(generation.number)
        return OpenGeneration(generation, previous.index)
    index = Index.open(directory, generation.number, cache_bytes=generation.cache_bytes)
    return OpenGeneration(generation, index)


def local_directory(generation: Generation) -> Path:
    """The directory of this host that has the files of a generation.

    The files of a snapshot are where they were written. Those of a store are copied to a cache if the host
    or the job names one, by whichever process comes first.
    """
    if not generation.stored:
        return Path(generation.directory)
    store = Store(generation.directory)
    folder = os.environ.get(CACHE_VARIABLE) or generation.cache
    if folder is None:
        return store.fetch(generation.number)
    directory = store.fetch(generation.number, store.cache_in(folder))
    # A batch that is run again may need the previous generation. A process that has mapped a file keeps it.
    Store(directory).sweep([generation.number - 1, generation.number])
    return directory
