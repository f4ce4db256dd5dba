"""The cost of maintaining an index: snapshots, a second process, inserts and removals."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import tamis
from benches import second_process, sources
from benches.checks import Check
from benches.second_process import SMAPS
from tamis.bench import CACHE_BYTES
from tamis.bench.measure import array, build, reopen, timed

BATCHES = 5
"""The number of small segments beside the large one when unmerged matching is measured."""


def run(run: Mapping[str, Any], folder: Path, *, rounds: int) -> tuple[dict[str, Any], list[Check]]:
    """The run's `upkeep` selects the measurement: `snapshot`, or `changes` with their number at a time."""
    documents, queries = sources.load(run, folder)
    bars = run["bars"]
    if run["upkeep"]["what"] == "snapshot":
        return _snapshot(documents, queries, bars, rounds)
    return _changes(documents, queries, run["upkeep"]["at_a_time"], bars, rounds)


def _snapshot(
    documents: Sequence[bytes], queries: Sequence[str], bars: Mapping[str, float], rounds: int
) -> tuple[dict[str, Any], list[Check]]:
    index, build_s, _ = build(queries, documents)
    with tempfile.TemporaryDirectory() as directory:
        snapshot_s, _ = timed(index.snapshot, Path(directory))
        index_bytes = index.stats().index_bytes
        opened = [timed(reopen, directory, CACHE_BYTES) for _ in range(rounds)]
        open_s = median(seconds for seconds, _ in opened)
        private = _private_bytes(Path(directory), documents[:100])
    figures = {
        "queries": len(queries),
        "build_s": round(build_s, 3),
        "snapshot_s": round(snapshot_s, 3),
        "open_s": round(open_s, 5),
        "index_bytes": index_bytes,
        "second_process_private_bytes": private,
    }
    checks = [Check("opening, × building", open_s / build_s, bars["open"])]
    if private is not None:
        checks.append(
            Check("private memory of a second process, × index", private / index_bytes, bars["private"])
        )
    return figures, checks


def _private_bytes(directory: Path, messages: Sequence[bytes]) -> int | None:
    """The private bytes of another process that opens the snapshot and matches; `None` if unknown."""
    if not SMAPS.exists():
        return None
    with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
        batch = pa.record_batch({"message": array(messages)})
        with pa.ipc.new_file(file.name, batch.schema) as writer:
            writer.write(batch)
        command = [sys.executable, "-m", second_process.__name__, str(directory), file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _changes(
    documents: Sequence[bytes], queries: Sequence[str], at_a_time: int, bars: Mapping[str, float], rounds: int
) -> tuple[dict[str, Any], list[Check]]:
    everything, one = array(documents), array(documents[:1])
    kept = len(queries) - BATCHES * at_a_time
    index, build_s, _ = build(queries[:kept], documents)
    with tempfile.TemporaryDirectory() as directory:
        index.snapshot(Path(directory))
        cold_s = median(
            timed(reopen(directory, CACHE_BYTES).match_batch, everything)[0] for _ in range(rounds)
        )
    warm_s = _warm(index, everything, rounds)

    def insert(batch: int) -> None:
        for line in range(kept + batch * at_a_time + 1, kept + (batch + 1) * at_a_time + 1):
            index.insert(line, queries[line - 1])
        index.match_batch(one)

    insert_s: list[float] = []
    after_s: list[float] = []
    for batch in range(BATCHES):
        insert_s.append(timed(insert, batch)[0])
        after_s.append(timed(index.match_batch, everything)[0])
    unmerged_s = _warm(index, everything, rounds)
    merged, _, _ = build(queries, documents)
    merged_s = _warm(merged, everything, rounds)
    _same_answers(index, merged, one)

    def remove(batch: int) -> None:
        for line in range(batch * at_a_time + 1, (batch + 1) * at_a_time + 1):
            index.remove(line)
        index.match_batch(one)

    remove_s = [timed(remove, batch)[0] for batch in range(BATCHES)]
    coldness = max(0.0, median(after_s) - unmerged_s) / (cold_s - warm_s)
    figures = {
        "queries": len(queries),
        "at_a_time": at_a_time,
        "build_s": round(build_s, 3),
        "insert_s": round(median(insert_s), 4),
        "remove_s": round(median(remove_s), 4),
        "cold_s": round(cold_s, 4),
        "warm_s": round(warm_s, 4),
        "after_insert_s": round(median(after_s), 4),
        "unmerged_s": round(unmerged_s, 4),
        "merged_s": round(merged_s, 4),
    }
    return figures, [
        Check(f"{at_a_time:,} inserts and a match, × building", median(insert_s) / build_s, bars["insert"]),
        Check(f"{at_a_time:,} removals and a match, × building", median(remove_s) / build_s, bars["remove"]),
        Check("unmerged, × merged", unmerged_s / merged_s, bars["unmerged"]),
        Check("the pass after an insert, from warm (0) to cold (1)", coldness, bars["after"]),
    ]


def _warm(index: tamis.Index, messages: Any, rounds: int) -> float:
    index.match_batch(messages)
    return median(timed(index.match_batch, messages)[0] for _ in range(rounds))


def _same_answers(one: tamis.Index, other: tamis.Index, messages: Any) -> None:
    """Check that inserts are visible: both indexes give the same targets."""
    if not one.targets(one.match_batch(messages)).equals(other.targets(other.match_batch(messages))):
        raise AssertionError("an index that grew by inserts matches otherwise than one that was loaded")
