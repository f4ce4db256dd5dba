"""Shards beside one shard: the time of a message, the shards it visits, the memory of building.

Stock quotes with 200 subscriptions for each symbol: the symbols grow with the subscriptions, else each
message would have more candidates. Each generation is built in a process of its own, whose private memory is
sampled.
"""

import json
import multiprocessing
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa

import tamis
from tamis.catalog import Changes
from tamis.generations.compiled import compile_changes
from tamis.generations.manifest import Manifest
from tamis.generations.sharded import compile_sharded
from tamis.model.sharding import Sharding
from tamis.model.version import Version
from tamis.workload import StockOptions, stock_messages, stock_subscriptions

BATCH = 50_000
EACH = 200
"""Subscriptions of a symbol."""

SEED = 1


@dataclass(frozen=True)
class Figures:
    """Of one number of subscriptions; times are of one thread."""

    subscriptions: int
    shards: int
    messages: int
    matches: int
    build_ratio: float
    """Time of building shards, by that of building one."""
    private_mb: float
    """The most private memory of the process that builds shards, above what it had before."""
    private_one_mb: float
    """The same of one shard."""
    visited: float
    """Shards that a message visits."""
    matching: float
    """Shards with a match."""
    matched_ratio: float
    """Time of matching in shards, by that in one."""
    route_expat: float
    """Time of reading and routing, by that of expat."""
    key_bytes: float
    """Bytes of the routing index for each distinct constant."""
    keys: int


def measure(subscriptions: int, shards: int, messages: int, rounds: int) -> Figures:
    """Build and match the same subscriptions twice: in shards, and in one."""
    documents = list(_messages(subscriptions, messages))
    with tempfile.TemporaryDirectory() as folder:
        several, one = Path(folder) / "several", Path(folder) / "one"
        sharding = Sharding("test", -(-subscriptions // shards))
        build_s, private = _in_a_process(several, subscriptions, sharding)
        build_one_s, private_one = _in_a_process(one, subscriptions, None)
        divided, whole = tamis.Index.open(several), tamis.Index.open(one)
        expected = _targets(whole, documents)
        if _targets(divided, documents) != expected:
            raise AssertionError("shards give other matches")
        routed = divided.route(documents)
        visited: Any = routed["shards"]
        times = _times(documents, divided, whole, rounds)
        layout = Manifest.read(several, 0).layout
        assert layout is not None
        assert layout.routing is not None
        files = [f"{layout.routing[1]}.routing", f"{layout.routing[0]}.segment"]
        size = sum((several / name).stat().st_size for name in files)
        keys = len({_symbol(text) for text in _queries(subscriptions)})
        return Figures(
            subscriptions,
            len(layout.built),
            messages,
            sum(map(len, expected)),
            build_s / build_one_s,
            private,
            private_one,
            len(visited.flatten()) / messages,
            _with_match(divided, documents),
            times["match"] / times["match_one"],
            times["route"] / times["expat"],
            size / keys,
            keys,
        )


def report(subscriptions: int, shards: int, messages: int, rounds: int) -> None:
    """Print the figures, and last a line of JSON."""
    found = measure(subscriptions, shards, messages, rounds)
    for name, value in asdict(found).items():
        print(f"{name:>16}  {value:,.3f}" if isinstance(value, float) else f"{name:>16}  {value:,}")
    print(json.dumps(asdict(found)))


def _queries(subscriptions: int) -> Iterator[str]:
    random = Random(SEED)
    symbols = max(1, subscriptions // EACH)
    options = StockOptions(subscriptions, 1_000, min(subscriptions // 10, 100_000))
    for text in stock_subscriptions(options, seed=SEED):
        yield re.sub(r'"S\d+"', lambda _: f'"S{random.randrange(symbols):07d}"', text, count=1)


def _symbol(query: str) -> str:
    return query.split('"', 2)[1]


def _messages(subscriptions: int, count: int) -> Iterator[bytes]:
    random = Random(SEED + 1)
    symbols = max(1, subscriptions // EACH)
    for message in stock_messages(StockOptions(subscriptions, count, 1), seed=SEED):
        symbol = f"<symbol>S{random.randrange(symbols):07d}<".encode()
        yield re.sub(rb"<symbol>S\d+<", symbol, message, count=1)


def _added(subscriptions: int) -> Iterator[pa.RecordBatch]:
    gathered: list[str] = []
    first = 0
    for text in _queries(subscriptions):
        gathered.append(text)
        if len(gathered) == BATCH:
            yield _rows(first, gathered)
            first, gathered = first + BATCH, []
    if gathered:
        yield _rows(first, gathered)


def _rows(first: int, queries: list[str]) -> pa.RecordBatch:
    numbers = np.arange(first, first + len(queries), dtype=np.uint64)
    ids = [f"s{number}" for number in numbers]
    texts = {"id": ids, "tenant": [""] * len(ids), "subscriber": ["s"] * len(ids)}
    texts |= {"delivery_target": ["default"] * len(ids), "query": queries, "prefixes": ["{}"] * len(ids)}
    columns: dict[str, Any] = {"number": pa.array(numbers), "revision": pa.array(np.ones_like(numbers))}
    columns |= {name: pa.array(values, pa.large_string()) for name, values in texts.items()}
    return pa.record_batch(columns)


def _in_a_process(directory: Path, subscriptions: int, sharding: Sharding | None) -> tuple[float, float]:
    """Seconds and private megabytes of building."""
    receiver, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=_build, args=(directory, subscriptions, sharding, sender)
    )
    process.start()
    found: tuple[float, float] = receiver.recv()
    process.join()
    return found


def _build(directory: Path, subscriptions: int, sharding: Sharding | None, sender: Any) -> None:
    directory.mkdir()
    changes = Changes("bench", Version(1, ""), None, [], _added(subscriptions), {}, 0)
    before, peak, is_done = _private(), [0.0], threading.Event()

    def sample() -> None:
        while not is_done.wait(0.02):
            peak[0] = max(peak[0], _private())

    watcher = threading.Thread(target=sample)
    watcher.start()
    started = perf_counter()
    if sharding is None:
        compile_changes(directory, None, changes, -1)
    else:
        compile_sharded(directory, None, changes, -1, sharding)
    elapsed = perf_counter() - started
    is_done.set()
    watcher.join()
    sender.send((elapsed, peak[0] - before))


def _private() -> float:
    status = Path(f"/proc/{os.getpid()}/status").read_text("ascii")
    return int(re.findall(r"RssAnon:\s+(\d+)", status)[0]) / 1024


def _targets(index: tamis.Index, documents: list[bytes]) -> list[list[int]]:
    targets: Any = index.targets(index.match_batch(documents))
    found: list[list[int]] = targets.to_pylist()
    return found


def _with_match(index: tamis.Index, documents: list[bytes]) -> float:
    """Shards with a match, for a message."""
    ends = np.cumsum([queries for _, queries, _ in index.shards])
    batch: Any = index.match_batch(documents)["queries"]
    shards = np.searchsorted(ends, batch.flatten().to_numpy(), side="right")
    rows = np.repeat(np.arange(len(batch)), np.diff(batch.offsets.to_numpy()))
    return len(np.unique(np.stack([rows, shards]), axis=1).T) / len(batch)


def _times(documents: list[bytes], divided: tamis.Index, whole: tamis.Index, rounds: int) -> dict[str, float]:
    """Medians of alternating runs."""

    def parse() -> None:
        for document in documents:
            expat.ParserCreate().Parse(document, True)

    work: dict[str, Any] = {
        "match": lambda: divided.match_batch(documents),
        "match_one": lambda: whole.match_batch(documents),
        "route": lambda: divided.route(documents),
        "expat": parse,
    }
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, call in work.items():
            started = perf_counter()
            call()
            found[name].append(perf_counter() - started)
    # The first run fills the caches.
    return {name: median(times[1:]) for name, times in found.items()}
