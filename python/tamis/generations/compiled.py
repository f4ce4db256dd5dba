"""Compiles the changes of a catalog into the next generation, in a directory."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tamis.catalog import Changes
from tamis.engine import Index
from tamis.generations import numbered
from tamis.generations.manifest import File, Manifest, kernel_files, renumber
from tamis.generations.numbered import Subscriptions
from tamis.model.message_batch import with_envelopes
from tamis.model.sample import Sampled
from tamis.network.tables import EVERYTHING

log = logging.getLogger(__name__)

LOAD_ROWS = 1_000_000
"""The most subscriptions that are held in memory at once; they become one segment."""

REFILE_SHARE = 0.2
"""A segment is filed again if that saves this share of the candidates of all segments."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A generation in a directory, with its open index, to which the next changes are added."""

    manifest: Manifest
    index: Index
    """Of several shards, the one that takes the changes."""

    @property
    def targets(self) -> int:
        """The targets of all shards."""
        layout = self.manifest.layout
        own = self.index.stats().targets
        return own if layout is None else own + sum(one.rows for one in layout.built) - len(layout.removed)


def open_compiled(directory: Path, number: int) -> Compiled:
    """Open a generation of a directory to compile changes onto it."""
    manifest = Manifest.read(directory, number)
    return Compiled(manifest, _open_index(directory, number))


def compile_changes(
    directory: Path,
    base: Compiled | None,
    changes: Changes,
    last: int,
    sample: Sequence[Sampled] = (),
    refiles: bool = False,
) -> Compiled:
    """The generation after `base`, with a number above `last`; the base itself if nothing in it changed.

    The messages of a sample tell how selective the conditions of new segments are. With `refiles` an older
    segment is filed by them too, if that pays.

    If this fails, the base's index has some of the changes and must not be used any more.
    """
    before, index = None, Index()
    if base is not None and changes.since is not None:
        before, index = base.manifest, base.index
    set_sample(index, sample)
    for target in changes.removed:
        index.remove(target)
    added = []
    for batch in _large_batches(changes.added):
        load_rows(index, batch)
        added.append(batch.select(numbered.COLUMNS))
    if refiles and index.refile(REFILE_SHARE):
        log.info("a segment was filed again by the sample of messages")
    number = index.snapshot(directory)
    tables = {link: table.hash for link, table in changes.tables.items() if table.hash != EVERYTHING}
    data = tuple(changes.data)
    same_queries = before is not None and last <= number == before.number
    if before is not None and same_queries and (before.tables, before.data) == (tables, data):
        return Compiled(before, index)
    # The kernel counts its own snapshots: the same number may stand for other subscriptions.
    if number <= last or (directory / Manifest.name(number)).exists():
        number = renumber(directory, number, max(number, last) + 1)
    subscriptions, removed = numbered.update(directory, before, changes.removed, added)
    names = [*kernel_files(directory, number), *subscriptions, *([removed] if removed else [])]
    files = files_with_hashes(directory, names, before)
    manifest = Manifest(
        number, changes.catalog, changes.version, subscriptions, removed, files, tables, changes.routes, data
    )
    manifest.write(directory)
    # New segments are in memory; opened again, they are mapped, and shared with other processes.
    return Compiled(manifest, _open_index(directory, number, beside=index))


def set_sample(index: Index, sample: Sequence[Sampled]) -> None:
    """Give an index the messages that tell how selective conditions are."""
    messages = with_envelopes([one.message for one in sample], [one.envelope for one in sample])
    index.set_sample(messages, [one.tenant for one in sample])


def files_with_hashes(directory: Path, names: Sequence[str], before: Manifest | None) -> dict[str, File]:
    """Files with their hashes; files of the previous generation are not read again."""
    known = {} if before is None else before.files
    return {name: known.get(name) or File.of(directory / name) for name in names}


def _open_index(directory: Path, number: int, beside: Index | None = None) -> Index:
    """The index of a generation; an error if its subscriptions cannot be opened."""
    Subscriptions.open(directory, number)
    return Index.open(directory, number, beside=beside)


def _large_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, concatenated to fewer and larger batches."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch)
        if sum(part.num_rows for part in gathered) >= LOAD_ROWS:
            yield numbered.concatenated(gathered)
            gathered = []
    if gathered:
        yield numbered.concatenated(gathered)


def load_rows(index: Index, batch: pa.RecordBatch) -> None:
    """Add subscriptions to an index. A query that this version of tamis refuses is reported and left out.

    Local data is not checked here: it was when they were registered, and it may change.
    """
    prefixes = batch.column("prefixes").dictionary_encode()
    columns = {
        "target": batch.column("number"),
        "query": batch.column("query"),
        "tenant": batch.column("tenant"),
        "prefixes": prefixes.indices.cast(pa.uint32()),
    }
    namespaces = [json.loads(str(text)) for text in prefixes.dictionary.to_pylist()]
    for refused in index.load_registered(pa.record_batch(columns), namespaces=namespaces).to_pylist():
        row = batch.slice(refused["row"], 1).to_pylist()[0]
        refusal = (row["id"], row["tenant"], refused["code"], refused["reason"])
        log.warning("subscription %s of tenant %r is left out: %s: %s", *refusal)
