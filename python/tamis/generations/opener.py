"""Opens generations: finds their files on this host, or fetches them from a store, verifies and maps them.

The next generation of the same place is opened by advancing the index: the segments that both share stay
mapped and the caches of matchers stay warm. Only new segments are verified and start with cold caches.
The local data that a generation names is opened likewise: what both have stays mapped.

Damaged files in the cache of a host are removed and fetched again, once. Damage in the store itself is an
error: its publisher repairs it.
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tamis.engine import Index
from tamis.errors import GenerationError, StoreError
from tamis.generations.damage import is_damage
from tamis.generations.manifest import Manifest
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.model.matching import AttachedData, Generation
from tamis.stored_data import StoredData, open_data

log = logging.getLogger(__name__)

CACHE_VARIABLE = "TAMIS_CACHE"
"""The environment variable by which a host names its own cache folder."""

T = TypeVar("T")


@dataclass
class OpenGeneration:
    """A generation whose files are mapped: all processes of a host share one copy."""

    generation: Generation
    index: Index
    data: Mapping[str, StoredData]
    """The local data that is attached to the index, by its file."""

    @cached_property
    def subscriptions(self) -> Subscriptions:
        """Its subscriptions by number; opened on first use, because a snapshot has none."""
        return _open_files(
            self.generation, lambda directory: Subscriptions.open(directory, self.generation.number)
        )


def open_generation(
    generation: Generation, previous: OpenGeneration | None = None, *, beside: OpenGeneration | None = None
) -> OpenGeneration:
    """Open a generation, by advancing the index of `previous` if that is of the same place.

    `previous` must not be used afterwards; `beside` may: segments that both have are shared. Neither is used
    if it turned out to be damaged.
    """
    if previous is not None and previous.index.damaged:
        remove_damaged_copies(generation)
        previous = None
    other = None if beside is None or beside.index.damaged else beside.index

    def open_index(directory: Path) -> tuple[Index, Mapping[str, StoredData]]:
        if previous is not None and _is_place_of(previous.generation, generation):
            index = previous.index
            if previous.generation.number != generation.number:
                index.advance(generation.number)
        else:
            index = Index.open(
                directory,
                generation.number,
                cache_bytes=generation.cache_bytes,
                beside=other,
                open_bytes=generation.open_bytes,
            )
        known = previous or beside
        return index, _attach_data(index, generation, directory, {} if known is None else known.data)

    return OpenGeneration(generation, *_open_files(generation, open_index))


def _is_place_of(one: Generation, other: Generation) -> bool:
    """Whether two generations are of the same place."""
    return replace(one, number=other.number, data=other.data) == other


def _attach_data(
    index: Index, generation: Generation, directory: Path, known: Mapping[str, StoredData]
) -> Mapping[str, StoredData]:
    """Attach the local data that a generation names, and no other. Files that are `known` stay mapped."""
    wanted = generation.data
    if generation.stored:
        manifest = Manifest.read(directory, generation.number)
        place = str(directory)
        wanted = tuple(AttachedData(one.tenant, one.name, place, one.manifest) for one in manifest.data)
    opened: dict[str, StoredData] = {}
    for one in wanted:
        if one.manifest not in opened:
            opened[one.manifest] = known.get(one.manifest) or open_data(one.directory, one.manifest)
    index.replace_data({(one.tenant, one.name): opened[one.manifest] for one in wanted})
    return opened


def local_directory(generation: Generation) -> Path:
    """The directory of this host that has the files of a generation.

    The files of a snapshot are where they were written. Those of a store are copied to a cache if the host
    or the job names one, by whichever process comes first.
    """
    if not generation.stored:
        return Path(generation.directory)
    store, cache = Store(generation.directory), _cache(generation)
    if cache is None:
        return store.fetch(generation.number)
    directory = store.fetch(generation.number, cache)
    # A batch that is run again may need the previous generation. A process that has mapped a file keeps it.
    Store(directory).sweep([generation.number - 1, generation.number])
    return directory


def remove_damaged_copies(generation: Generation) -> None:
    """Remove damaged files from this host's cache of a generation, if it has one; they are fetched again."""
    cache = _cache(generation)
    if cache is not None:
        Store(cache).purge()


def _cache(generation: Generation) -> Path | None:
    """The cache of this host for the store of a generation; None if its files are mapped in place."""
    folder = os.environ.get(CACHE_VARIABLE) or generation.cache
    if not generation.stored or folder is None:
        return None
    return Store(generation.directory).cache_in(folder)


def _open_files(generation: Generation, open_in: Callable[[Path], T]) -> T:
    """Open files of a generation in their directory of this host; damaged copies are fetched again."""
    try:
        return open_in(local_directory(generation))
    except (GenerationError, StoreError) as error:
        if not is_damage(error) or _cache(generation) is None:
            raise
        log.warning("%s; it is fetched again", error)
        remove_damaged_copies(generation)
        return open_in(local_directory(generation))
