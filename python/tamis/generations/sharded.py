"""Compiles a catalog into shards, and its changes into the last of them; memory holds one shard at a time.

The whole catalog: rows get places, are spilled by place, and one shard after the other is built.

Changes: what was added goes to the last shard, which is small, and what was removed to a list for all.
Later, one a refresh, the shard that most rows of the last one belong to is built again with them; it is cut
if it has too many rows.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.catalog import Changes
from tamis.engine import Index
from tamis.generations import numbered
from tamis.generations.compiled import Compiled, files_with_hashes, load_rows, set_sample
from tamis.generations.manifest import Manifest
from tamis.generations.numbered import Subscriptions
from tamis.model.sample import Sampled
from tamis.model.sharding import EMPTY, Sharding
from tamis.network.tables import EVERYTHING
from tamis.shard_files import files_of, write_routing, write_shards
from tamis.shards.layout import Layout, Shard
from tamis.shards.spilling import FIRST, ShardRows, Spill, cut, place_at, with_places

log = logging.getLogger(__name__)

SUMMARY_BYTES = 64 << 20
"""The most bytes of the summary of a shard."""

SPREAD_SHARE = 8
"""Rows are moved out of the last shard once it has a shard's rows divided by this."""


def is_divided_as(manifest: Manifest, sharding: Sharding | None) -> bool:
    """Whether a generation has the shards that the settings ask for."""
    return (None if manifest.layout is None else manifest.layout.sharding) == sharding


def open_latest(directory: Path, manifest: Manifest) -> Index:
    """The shard that takes the changes, as an index of its own."""
    assert manifest.layout is not None
    last = len(manifest.layout.built)
    index = Index()
    rows = Index.open(directory, manifest.number, shards=[last]).rows()
    index.load_registered(rows, namespaces=[{}])
    return index


def compile_sharded(
    directory: Path,
    base: Compiled | None,
    changes: Changes,
    last: int,
    sharding: Sharding,
    sample: Sequence[Sampled] = (),
) -> Compiled:
    """As `compile_changes`, into shards. The base must be divided in the same way."""
    before = None if base is None or changes.since is None else base.manifest
    if before is None or base is None:
        index, layout = Index(), _whole(directory, changes, sharding, sample)
    else:
        index, layout = base.index, _changed(directory, before, base.index, changes, sample)
    tables = {link: table.hash for link, table in changes.tables.items() if table.hash != EVERYTHING}
    data = tuple(changes.data)
    same = before is not None and (before.layout, before.tables, before.data) == (layout, tables, data)
    if base is not None and same and base.manifest.number >= last:
        return base
    number = 1 + max(last, -1 if base is None else base.manifest.number, *_numbers(directory))
    names = [shard.written for shard in layout.shards]
    write_shards(directory, number, names, layout.removed, layout.routing)
    subscriptions = tuple(name for shard in reversed(layout.shards) for name in shard.subscriptions)
    files = files_with_hashes(directory, [*_files(directory, number, layout), *subscriptions], before)
    manifest = Manifest(
        number,
        changes.catalog,
        changes.version,
        subscriptions,
        None,
        files,
        tables,
        changes.routes,
        data,
        layout,
    )
    manifest.write(directory)
    return Compiled(manifest, index)


def _numbers(directory: Path) -> list[int]:
    """The numbers of all lists of the kernel, also of generations that were not finished."""
    names = (path.stem.partition("-")[2] for path in directory.glob("generation-*.manifest"))
    return [-1, *(int(name) for name in names if name.isdecimal())]


def _files(directory: Path, number: int, layout: Layout) -> list[str]:
    names = [Manifest.kernel_name(number)]
    for line in (directory / names[0]).read_text("utf-8").splitlines():
        match line.split(" "):
            case ["routing", paths, table] if paths != EMPTY[0]:
                names += [f"{paths}.segment", f"{paths}.texts", f"{table}.routing"]
            case ["removed", removed] if removed != EMPTY[0]:
                names.append(f"{removed}.targets")
    return names + [name for shard in layout.shards for name in shard.files]


def _whole(directory: Path, changes: Changes, sharding: Sharding, sample: Sequence[Sampled]) -> Layout:
    """All rows, shard by shard."""
    shards = []
    with Spill(directory / ".spill") as spill:
        for batch in changes.added:
            spill.add(with_places(batch, sharding.placement))
        for rows in spill.shards(sharding.rows):
            shards.append(_built(directory, rows, sample))
            log.info("shard %d of about %d is built", len(shards), 1 + spill.rows // sharding.rows)
    layout = Layout(sharding, (*(shards or [Shard(FIRST)]), Shard("")))
    return _routed(directory, layout)


def _built(directory: Path, rows: ShardRows, sample: Sequence[Sampled]) -> Shard:
    """A shard of these rows."""
    index = Index()
    set_sample(index, sample)
    table = rows.rows.sort_by("number").combine_chunks()
    for batch in table.to_batches():
        load_rows(index, batch)
    name, queries = index.write_shard(directory, summary_bytes=SUMMARY_BYTES)
    known = table.select(numbered.COLUMNS).to_batches()
    subscriptions = (numbered.write_batch(directory, numbered.concatenated(known)),) if known else ()
    return Shard(rows.first, name, queries, len(table), tuple(files_of(directory, name)), subscriptions)


def _routed(directory: Path, layout: Layout) -> Layout:
    """The layout with a routing index."""
    routing, damaged = write_routing(directory, [shard.written for shard in layout.built])
    for name in damaged:
        log.warning("the summary of shard %s is damaged: all messages visit it until it is built again", name)
    return replace(layout, routing=routing, damaged=tuple(damaged))


def _changed(
    directory: Path, before: Manifest, index: Index, changes: Changes, sample: Sequence[Sampled]
) -> Layout:
    """The layout after changes, which go to the last shard."""
    layout = before.layout
    assert layout is not None
    set_sample(index, sample)
    others = [number for number in changes.removed if not index.remove(number)]
    removed = {*layout.removed, *_known(directory, layout, others)}
    added = []
    for batch in changes.added:
        load_rows(index, batch)
        added.append(batch.select(numbered.COLUMNS))
    latest = layout.latest
    if added or changes.removed:
        parts = replace(before, subscriptions=latest.subscriptions)
        subscriptions, _ = numbered.update(directory, parts, changes.removed, added)
        layout = replace(layout, removed=tuple(sorted(removed)))
        latest = replace(latest, subscriptions=subscriptions)
    most = max(1, layout.sharding.rows // SPREAD_SHARE)
    if index.stats().targets > most or _is_worn(layout) or layout.damaged:
        layout, moved = _spread(directory, before, layout, index, latest, sample)
        latest = replace(latest, subscriptions=_without(directory, latest.subscriptions, moved))
    if latest != layout.latest or added or changes.removed:
        latest = _written(directory, latest, index)
    return replace(layout, shards=(*layout.built, latest))


def _written(directory: Path, latest: Shard, index: Index) -> Shard:
    name, queries = index.write_shard(directory, summary_bytes=0)
    rows = index.stats().targets
    return replace(latest, name=name, queries=queries, rows=rows, files=tuple(files_of(directory, name)))


def _is_worn(layout: Layout) -> bool:
    """Whether more was removed than a shard should have."""
    return len(layout.removed) > max(1, layout.sharding.rows // SPREAD_SHARE)


def _spread(
    directory: Path, before: Manifest, layout: Layout, index: Index, latest: Shard, sample: Sequence[Sampled]
) -> tuple[Layout, set[int]]:
    """Build one shard again with the rows of the last one that belong to it, without what was removed of it.

    Returns the numbers of the rows that it took from the last shard.
    """
    waiting = _placed(index.rows(), layout.sharding)
    places = [place_at(waiting, at) for at in range(len(waiting))]
    firsts = np.array([shard.first for shard in layout.built])
    owners = np.maximum(np.searchsorted(firsts, np.array(places, str), side="right") - 1, 0)
    counts = np.bincount(owners, minlength=len(firsts))
    if _is_worn(layout):
        counts = counts + np.bincount(_shards_of(directory, layout), minlength=len(firsts))
    # A shard whose summary is damaged comes first.
    counts = counts + np.array([(one.name in layout.damaged) << 32 for one in layout.built])
    at = int(np.argmax(counts))
    shard, gone = layout.built[at], set(layout.removed)
    moved = waiting.filter(pa.array(owners == at))
    kept = _placed(Index.open(directory, before.number, shards=[at]).rows(), layout.sharding)
    kept = kept.filter(pa.array(~np.isin(kept.column("number").to_numpy(), list(gone))))
    tables = Subscriptions.of_files(directory, (*latest.subscriptions, *shard.subscriptions))
    rows = pa.concat_tables([kept, moved])
    known = tables.look_up(rows.column("number").combine_chunks())
    for name in numbered.COLUMNS:
        if name not in rows.column_names:
            rows = rows.append_column(name, known.column(name))
    pieces = list(cut(rows, shard.first, layout.sharding.rows)) or [ShardRows(shard.first, rows)]
    built = [_built(directory, piece, sample) for piece in pieces]
    numbers = {int(number) for number in moved.column("number").to_numpy()}
    for number in numbers:
        index.remove(number)
    own = {int(number) for number in _numbers_of(directory, shard)}
    log.info("shard %d is built again with %d changes, as %d shards", at, len(numbers), len(built))
    shards = (*layout.built[:at], *built, *layout.built[at + 1 :], latest)
    left = tuple(sorted(gone - own))
    return _routed(directory, replace(layout, shards=shards, removed=left)), numbers


def _placed(rows: pa.RecordBatch, sharding: Sharding) -> pa.Table:
    """Rows of an index with their places."""
    columns: dict[str, Any] = dict(zip(("number", "tenant", "query"), rows.columns, strict=True))
    columns["prefixes"] = pa.repeat(pa.scalar("{}"), rows.num_rows)
    # Without the kernel's schema: fields of the catalog's rows may be null.
    return pa.Table.from_batches([with_places(pa.record_batch(columns), sharding.placement)])


def _known(directory: Path, layout: Layout, numbers: Sequence[int]) -> list[int]:
    """Those of the numbers that a shard has, except the last shard."""
    wanted, known = np.array(numbers, np.uint64), set()
    for shard in layout.built if numbers else ():
        for name in shard.subscriptions:
            own: Any = numbered.open_batch(directory / name).column("number").to_numpy()
            at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
            known |= {int(number) for number in wanted[own[at] == wanted]}
    return sorted(known)


def _numbers_of(directory: Path, shard: Shard) -> Iterable[Any]:
    for name in shard.subscriptions:
        yield from numbered.open_batch(directory / name).column("number").to_numpy()


def _shards_of(directory: Path, layout: Layout) -> "np.typing.NDArray[np.int64]":
    """The shard of each removed number that one has."""
    removed = np.array(layout.removed, np.uint64)
    found = []
    for at, shard in enumerate(layout.built):
        for name in shard.subscriptions:
            known = numbered.open_batch(directory / name).column("number").to_numpy()
            found.append(np.full(int(np.isin(removed, known).sum()), at, np.int64))
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _without(directory: Path, names: Sequence[str], moved: set[int]) -> tuple[str, ...]:
    """The tables without the rows that were moved."""
    batches = [numbered.open_batch(directory / name) for name in names]
    left = []
    for batch in batches:
        keep: Any = pc.invert(pc.is_in(batch.column("number"), pa.array(sorted(moved), pa.uint64())))
        left.append(batch.filter(keep))
    left = [batch for batch in left if batch.num_rows]
    return (numbered.write_batch(directory, _in_order(left)),) if left else ()


def _in_order(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).sort_by("number")
    return numbered.concatenated(table.to_batches())
