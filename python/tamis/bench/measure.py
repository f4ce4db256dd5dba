"""Measures one workload: messages against queries, one thread, one interpreter, medians."""

import gc
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, ParamSpec, TypeVar
from xml.parsers import expat

import pyarrow as pa
from lxml import etree

import tamis
from tamis.bench import CACHE_BYTES, ROUNDS
from tamis.engine import read_all
from tamis.model.progress import Report

P = ParamSpec("P")
T = TypeVar("T")

SAMPLE = 100
"""Messages matched before the queries are loaded: the sample for selectivity. A running job has none."""

COMPILED = 200_000
"""The most queries that are compiled with lxml; with more, the time is scaled."""


@dataclass(frozen=True)
class Timed:
    """A result whose times, with `_us` in their names, are per document and compared with expat's."""

    expat_us: float

    def ratio(self, field: str) -> float:
        """A time as a multiple of expat's."""
        return float(getattr(self, f"{field}_us") / self.expat_us)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: microseconds to three digits, seconds to six."""
        return {
            name: round(value, 3 if name.endswith("_us") else 6) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class Result(Timed):
    """The figures of `tamis bench filter`. Times with `_us` are per document."""

    queries: int
    distinct: int
    refused: int
    documents: int
    bytes: int
    load_s: float
    lxml_compile_s: float
    cold_us: float
    """The first pass over all documents, with empty caches."""
    unseen_us: float
    """The odd-numbered documents, matched for the first time after the even-numbered ones."""
    warm_us: float
    """The steady state over all documents."""
    read_us: float
    expat_version: str
    matches: int
    """Over all documents, as is the next."""
    candidates: int
    index_bytes: int
    text_bytes: int
    cache_bytes: int
    snapshot_s: float
    open_s: float
    settled: int
    """The work over all documents, in the steady state."""
    verified: int
    steps: int
    looked_up: int
    uncached: int
    caches: tamis.CacheBytes
    """Every cache; `cache_bytes` are those that the bound counts."""


def measure(
    documents: Sequence[bytes],
    queries: Sequence[str],
    *,
    rounds: int = ROUNDS,
    cache_bytes: int = CACHE_BYTES,
    report: Report | None = None,
) -> tuple[Result, tamis.Index]:
    """Load the queries and match the documents repeatedly, in the given order.

    The index is the one that was measured, to ask for more.
    """
    steps = rounds + 2
    progress = report or (lambda _done, _total: None)
    odd, even = array(documents[0::2]), array(documents[1::2])
    everything = array(documents)

    progress(0, steps)
    compile_s = lxml_compile_s(queries)
    progress(1, steps)
    index, load_s, refused = build(queries, documents, cache_bytes=cache_bytes)
    progress(2, steps)
    times: dict[str, list[float]] = {name: [] for name in ("expat", "read", "warm", "cold", "unseen", "open")}
    with tempfile.TemporaryDirectory() as directory:
        snapshot_s, _ = timed(index.snapshot, Path(directory))
        matched = index.match_batch(everything)
        for done in range(rounds):
            times["expat"].append(timed(parse_with_expat, documents)[0])
            times["read"].append(timed(read_all, everything)[0])
            times["warm"].append(timed(index.match_batch, everything)[0])
            open_s, fresh = timed(reopen, directory, cache_bytes)
            times["open"].append(open_s)
            times["cold"].append(timed(fresh.match_batch, everything)[0])
            fresh = reopen(directory, cache_bytes)
            fresh.match_batch(even)
            times["unseen"].append(timed(fresh.match_batch, odd)[0])
            progress(done + 3, steps)
    stats = index.stats()

    def each(name: str, count: int) -> float:
        return median(times[name]) / max(count, 1) * 1e6

    result = Result(
        queries=len(queries),
        distinct=stats.queries,
        refused=refused,
        documents=len(documents),
        bytes=sum(map(len, documents)),
        load_s=load_s,
        lxml_compile_s=compile_s,
        cold_us=each("cold", len(documents)),
        unseen_us=each("unseen", len(odd)),
        warm_us=each("warm", len(documents)),
        read_us=each("read", len(documents)),
        expat_us=each("expat", len(documents)),
        expat_version=expat.EXPAT_VERSION,
        matches=count_matches(matched),
        candidates=total(matched, "candidates"),
        index_bytes=stats.index_bytes,
        text_bytes=stats.text_bytes,
        cache_bytes=stats.cache_bytes,
        snapshot_s=snapshot_s,
        open_s=median(times["open"]),
        settled=total(matched, "settled"),
        verified=total(matched, "verified"),
        steps=total(matched, "steps"),
        looked_up=total(matched, "looked_up"),
        uncached=total(matched, "uncached"),
        caches=stats.caches,
    )
    return result, index


def build(
    queries: Sequence[str], documents: Sequence[bytes], *, cache_bytes: int = CACHE_BYTES
) -> tuple[tamis.Index, float, int]:
    """Load the queries, each under its line number; returns the index, the time and the refusals."""
    index = tamis.Index(cache_bytes=cache_bytes)
    # Even-numbered documents only: the odd ones are to be new to the index when `unseen_us` is measured.
    index.match_batch(array(documents[1::2][:SAMPLE]))
    table = pa.table(
        {
            "target": pa.array(range(1, len(queries) + 1), pa.uint64()),
            "query": pa.array(queries, pa.large_string()),
        }
    )
    load_s, refused = timed(index.load, table)
    return index, load_s, refused.num_rows


def reopen(directory: str, cache_bytes: int) -> tamis.Index:
    """The index opened from its files, with cold caches, as by another process."""
    return tamis.Index.open(Path(directory), cache_bytes=cache_bytes)


def array(documents: Sequence[bytes]) -> Any:
    """Messages as an Arrow array, as in a batch."""
    return pa.array(documents, pa.large_binary())


def count_matches(matched: pa.RecordBatch) -> int:
    """How many queries matched, over all documents of a batch."""
    queries: Any = matched.column("queries")
    return len(queries.flatten())


def total(matched: pa.RecordBatch, column: str) -> int:
    """The sum of a column of counts."""
    return sum(count or 0 for count in matched.column(column).to_pylist())


def parse_with_expat(documents: Sequence[bytes]) -> None:
    """Parse with expat, without handlers."""
    for document in documents:
        expat.ParserCreate().Parse(document, True)


def lxml_compile_s(queries: Sequence[str]) -> float:
    """The time in which lxml compiles the queries that it supports.

    All compiled queries are held at once, as a program that uses them does, so Python's garbage collection is
    included (two thirds of the time). Compiling each and dropping it takes a fifth.
    """
    sample = queries[:: max(1, -(-len(queries) // COMPILED))]

    def compile_all() -> list[etree.XPath]:
        compiled = []
        for query in sample:
            try:
                compiled.append(etree.XPath(query))
            except etree.XPathSyntaxError:
                continue
        return compiled

    start = perf_counter()
    compiled = compile_all()
    seconds = perf_counter() - start
    del compiled
    return seconds * (len(queries) / max(len(sample), 1))


def timed(work: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> tuple[float, T]:
    """Run the work; returns the seconds and the result."""
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        value = work(*arguments, **keywords)
        return perf_counter() - start, value
    finally:
        gc.enable()
