"""Every way to answer "which of these queries match which of these messages?".

All of them must give the same answer; tests replay their cases through each.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import tamis
from tamis import naive as kernel_naive
from tamis import shard_files

Answer = list[set[int]]
"""For each message, the positions of the queries that match it."""

Engine = Callable[[Sequence[str], Sequence[bytes], Mapping[str, str]], Answer]

Outputs = list[list[tuple[bytes | None, str | None]]]
"""For each message and each transformation, its output or the code of why there is none; neither of
a message that does not concern it."""

Transformer = Callable[[Sequence[str], Sequence[bytes], Mapping[str, str]], Outputs]


def table(queries: Sequence[str], first: int = 0) -> pa.Table:
    """Queries under their places."""
    places = pa.array(range(first, first + len(queries)), pa.uint64())
    return pa.table({"target": places, "query": pa.array(queries, pa.string())})


def answer(index: tamis.Index, messages: Sequence[bytes]) -> Answer:
    """The matches of an index, as positions of queries."""
    batch = index.match_batch(messages)
    assert batch["code"].null_count == len(messages), batch["reason"].drop_null().to_pylist()
    return [set(targets or ()) for targets in index.targets(batch).to_pylist()]


SMALL_CACHE = (1 << 20) - 1
TINY_CACHE = 4096
"""A capacity that is nearly always exceeded."""


def loaded(
    queries: Sequence[str],
    namespaces: Mapping[str, str],
    *,
    cache_bytes: int = 64 << 20,
    large_inputs: bool = False,
) -> tamis.Index:
    """An index of one segment; with `large_inputs` it always takes the methods for large inputs."""
    create = tamis.Index._for_large_inputs if large_inputs else tamis.Index
    index = create(cache_bytes=cache_bytes)
    refused = index.load(table(queries), namespaces=namespaces)
    assert refused.num_rows == 0, refused.to_pylist()
    return index


def naive(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """The slow evaluator over the AST."""
    rows = kernel_naive.naive_batch(queries, messages, namespaces)
    return [set(places) for places in rows]


def nfa(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """The automaton with its cache off."""
    return answer(loaded(queries, namespaces, cache_bytes=0), messages)


def dfa(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """The automaton, lazily determinised; asked twice, so that the cache has something to say."""
    index = loaded(queries, namespaces)
    cold = answer(index, messages)
    assert answer(index, messages) == cold
    return cold


def tiny_cache(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """A cache that is always full, and the methods for large inputs."""
    return answer(loaded(queries, namespaces, cache_bytes=TINY_CACHE, large_inputs=True), messages)


def small_cache(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """A small cache, and the methods that the product chooses."""
    return answer(loaded(queries, namespaces, cache_bytes=SMALL_CACHE), messages)


def large_inputs(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """Always the methods for large messages and many queries."""
    return answer(loaded(queries, namespaces, cache_bytes=SMALL_CACHE, large_inputs=True), messages)


def many_segments(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """Several segments."""
    return answer(segmented(queries, namespaces), messages)


def reopened(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """A snapshot, mapped from its files."""
    with tempfile.TemporaryDirectory() as folder:
        loaded(queries, namespaces).snapshot(folder)
        return answer(tamis.Index.open(folder), messages)


def memory_folder() -> "tempfile.TemporaryDirectory[str]":
    """A folder in memory where there is one: shards are many small files, and each is forced to disk."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)


def written_in_shards(
    folder: str, queries: Sequence[str], namespaces: Mapping[str, str], count: int, key_bits: int
) -> None:
    """A generation of shards filled at random, the last of which is not in the routing index."""
    random = Random(len(queries))
    filled = [tamis.Index() for _ in range(count)]
    for place, query in enumerate(queries):
        random.choice(filled).insert(place, query, namespaces=namespaces)
    directory = Path(folder)
    shards = [index.write_shard(directory, summary_bytes=1 << 20) for index in filled]
    routing, damaged = shard_files.write_routing(directory, shards[:-1], key_bits)
    assert damaged == []
    shard_files.write_shards(directory, 0, shards, [], routing)


def one_bit_keys(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """The same with keys of one bit and room for one shard."""
    with memory_folder() as folder:
        written_in_shards(folder, queries, namespaces, 5, 1)
        return answer(tamis.Index.open(folder, open_bytes=0), messages)


def five_shards(queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]) -> Answer:
    """Five shards filled at random, and each as an index of its own: a message visits all with a match."""
    with memory_folder() as folder:
        written_in_shards(folder, queries, namespaces, 5, shard_files.KEY_BITS)
        whole = tamis.Index.open(folder)
        visited: list[Any] = whole.route(messages)["shards"].to_pylist()
        found: Answer = [set() for _ in messages]
        for shard in range(5):
            alone = tamis.Index()
            alone.load(tamis.Index.open(folder, shards=[shard]).rows())
            for place, targets in enumerate(answer(alone, messages)):
                assert not targets or shard in visited[place]
                found[place] |= targets
        assert answer(whole, messages) == found
        return found


ENGINES: dict[str, Engine] = {
    "naive": naive,
    "nfa": nfa,
    "dfa": dfa,
    "tiny-cache": tiny_cache,
    "small-cache": small_cache,
    "large-inputs": large_inputs,
    "many-segments": many_segments,
    "reopened": reopened,
    "five-shards": five_shards,
    "one-bit-keys": one_bit_keys,
}


def naive_transform(
    queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]
) -> Outputs:
    """The slow evaluator over the AST."""
    return kernel_naive.naive_transform(queries, messages, namespaces)


def outputs(
    index: tamis.Index, count: int, messages: Sequence[bytes], schema: tamis.Schema | None
) -> Outputs:
    """The outputs of an index for messages, by the positions of its transformations."""
    rows: Outputs = []
    for message in messages:
        row: list[tuple[bytes | None, str | None]] = [(None, None)] * count
        for output in index.transform(message, schema=schema):
            row[output.target] = (output.payload, output.code)
        rows.append(row)
    return rows


def by_network(
    make: Callable[[Sequence[str], Mapping[str, str]], tamis.Index], schema: tamis.Schema | None = None
) -> Transformer:
    """The network of shared operators; asked twice, so that plans and caches have something to say."""

    def transform(
        queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]
    ) -> Outputs:
        index = make(queries, namespaces)
        cold = outputs(index, len(queries), messages, schema)
        assert outputs(index, len(queries), messages, schema) == cold
        return cold

    return transform


def segmented(queries: Sequence[str], namespaces: Mapping[str, str]) -> tamis.Index:
    """Several loads, each with its own segment, and inserts after them."""
    index = tamis.Index()
    loads = len(queries) * 3 // 4
    step = max(1, loads // 7)
    for first in range(0, loads, step):
        index.load(table(queries[first : min(first + step, loads)], first), namespaces=namespaces)
    for place in range(loads, len(queries)):
        index.insert(place, queries[place], namespaces=namespaces)
    return index


def transform_reopened(
    queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]
) -> Outputs:
    """A snapshot, mapped from its files."""
    with tempfile.TemporaryDirectory() as folder:
        loaded(queries, namespaces).snapshot(folder)
        return outputs(tamis.Index.open(folder), len(queries), messages, None)


def transform_in_shards(
    queries: Sequence[str], messages: Sequence[bytes], namespaces: Mapping[str, str]
) -> Outputs:
    """Five shards filled at random, keys of one bit, and room for one shard."""
    with memory_folder() as folder:
        written_in_shards(folder, queries, namespaces, 5, 1)
        return outputs(tamis.Index.open(folder, open_bytes=0), len(queries), messages, None)


TRANSFORMERS: dict[str, Transformer] = {
    "naive": naive_transform,
    "network": by_network(loaded),
    "network-without-cache": by_network(partial(loaded, cache_bytes=0)),
    "network-with-tiny-cache": by_network(partial(loaded, cache_bytes=TINY_CACHE, large_inputs=True)),
    "network-of-many-segments": by_network(segmented),
    "network-reopened": transform_reopened,
    "network-in-shards": transform_in_shards,
}
