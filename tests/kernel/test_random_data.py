"""Random messages × local data × queries that join them: every engine against Saxon with the data bound.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_PAIRS=1000000 pytest tests/kernel/test_random_data.py`.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import pytest

import tamis
from tamis import naive as kernel_naive
from tamis.stored_data import build_data, change_data, open_data
from tests.helpers import random_data
from tests.helpers.engines import TINY_CACHE, Answer, Outputs, answer, outputs, table
from tests.helpers.random_runs import SEED, pairs_wanted
from tests.helpers.saxon import Result, Saxon
from tests.helpers.saxon_query import PROLOG

PAIRS = pairs_wanted(24_000)

MESSAGES = 12

Data = dict[str, Sequence[bytes]]
Answers = tuple[Answer, Outputs]
Engine = Callable[[Sequence[str], Sequence[bytes], Data], Answers]


def random_sets(random: Random) -> Data:
    """Local data, by its name in the order of the names. Each record has an `id` of its own."""
    sets = {
        "c": [random_data.record(random) for _ in range(random.randint(2, 16))],
        "o": [random_data.document(random)],
        "w": [random_data.record(random) for _ in range(random.randint(2, 8))],
    }
    return {name: [with_id(record, place) for place, record in enumerate(of)] for name, of in sets.items()}


def with_id(record: bytes, place: int) -> bytes:
    return re.sub(rb"<([a-z])", rb"<\1 id='i%d'" % place, record, count=1)


def attach(index: tamis.Index, data: Data) -> tamis.Index:
    for name, records in data.items():
        index.attach(name, tamis.Data(records))
    return index


def load(index: tamis.Index, queries: Sequence[str]) -> tamis.Index:
    refused = index.load(table(queries))
    assert refused.num_rows == 0, refused.to_pylist()
    return index


def answers(index: tamis.Index, queries: Sequence[str], messages: Sequence[bytes]) -> Answers:
    """Asked twice, so that caches have something to say."""
    cold = answer(index, messages), outputs(index, len(queries), messages, None)
    assert (answer(index, messages), outputs(index, len(queries), messages, None)) == cold
    return cold


def naive(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    sets = {name: tamis.Data(records) for name, records in data.items()}
    matching = [set(places) for places in kernel_naive.naive_batch(queries, messages, data=sets)]
    made: Outputs = kernel_naive.naive_transform(queries, messages, data=sets)
    # The output of a filter is the message.
    for row, matched, message in zip(made, matching, messages, strict=True):
        for place in matched:
            if row[place] == (None, None):
                row[place] = (message, None)
    return matching, made


def indexed(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    return answers(load(attach(tamis.Index(), data), queries), queries, messages)


def with_cache(cache_bytes: int, queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    create = tamis.Index._for_large_inputs if cache_bytes else tamis.Index
    return answers(load(attach(create(cache_bytes=cache_bytes), data), queries), queries, messages)


def many_segments(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    index = attach(tamis.Index(), data)
    step = max(1, len(queries) // 7)
    for first in range(0, len(queries), step):
        index.load(table(queries[first : first + step], first))
    return answers(index, queries, messages)


def reopened(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        load(attach(tamis.Index(), data), queries).snapshot(folder)
        return answers(attach(tamis.Index.open(folder), data), queries, messages)


def updated(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    """Other data first: what was found in it must not be remembered."""
    other: Data = {"c": [b"<r k='1'/>"], "o": [b"<d/>"], "w": [b"<t/>", b"<r k='a'><n>1</n></r>"]}
    index = load(attach(tamis.Index(), other), queries)
    answers(index, queries, messages)
    return answers(attach(index, data), queries, messages)


def stored(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        index = tamis.Index()
        for name, records in data.items():
            files = build_data(folder, [records[:3], records[3:]])
            index.attach(name, open_data(folder, files.manifest))
        return answers(load(index, queries), queries, messages)


def changed(queries: Sequence[str], messages: Sequence[bytes], data: Data) -> Answers:
    """Many segments: records that are replaced once or twice, removed, and added."""
    random = Random(len(messages[0]))
    with tempfile.TemporaryDirectory() as folder:
        index = tamis.Index()
        for name, records in data.items():
            first = random.randint(0, len(records))
            others = [with_id(b"<r k='1'><n>a</n></r>", place) for place in range(first)]
            dropped = [with_id(b"<t k='a'/>", 100 + place) for place in range(3)]
            files = build_data(folder, [dropped[:1], others, dropped[1:]], key="/*/@id")
            for part in (0, 1):
                upserts = [one for place, one in enumerate(records[:first]) if place % 2 == part]
                random.shuffle(upserts)
                files = change_data(folder, files.manifest, upserts=[upserts], deletes=["i100"])
            files = change_data(folder, files.manifest, upserts=[records[first:]], deletes=["i101", "i102"])
            assert list(open_data(folder, files.manifest)) == records
            index.attach(name, open_data(folder, files.manifest))
        return answers(load(index, queries), queries, messages)


ENGINES: dict[str, Engine] = {
    "naive": naive,
    "indexed": indexed,
    "without-cache": partial(with_cache, 0),
    "tiny-cache": partial(with_cache, TINY_CACHE),
    "many-segments": many_segments,
    "reopened": reopened,
    "updated": updated,
    "stored": stored,
    "changed": changed,
}


def test_every_engine_joins_as_saxon_does(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    matched: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    pairs = 0
    with capsys.disabled():
        print(f"\nrandom local data: seed {SEED}", flush=True)
    while pairs < PAIRS:
        messages = [random_data.message(random) for _ in range(MESSAGES)]
        data = random_sets(random)
        queries = [random_data.query(random, name) for name in random_data.PRODUCTIONS * 3]
        texts = [query.text for query in queries]
        for text in texts:
            canonical = tamis.check(text).canonical
            assert tamis.check(canonical).canonical == canonical, f"not stable (seed {SEED}): {text}"
        given = {name: engine(texts, messages, data) for name, engine in ENGINES.items()}
        matching, made = given["naive"]
        saxon = Saxon(messages, data)
        for place, query in enumerate(queries):
            where = f"seed {SEED}: {query.text}\nfor Saxon: {query.saxon}\ndata {data}"
            if query.is_filter:
                truth = saxon.conditions(PROLOG, query.saxon)
            else:
                expected = saxon.outputs(query.saxon, None)
                truth = []
                for message, right, row in zip(messages, expected, made, strict=True):
                    # Without a tuple, there is no output.
                    right = right if right.tree is None or len(right.tree) else Result()
                    got = Result.by(*row[place])
                    assert got == right, f"{where}\nof {message!r}\nsaxon {right}\ntamis {got}"
                    truth.append(right.tree is not None or right.code is not None)
            for number, holds in enumerate(truth):
                found = place in matching[number]
                assert found == holds, f"{where}\nof {messages[number]!r}\nsaxon {holds}"
                (matched if holds else failed)[query.production] += 1
        for name, answers in given.items():
            for at, (message, one) in enumerate(zip(messages, answers[0], strict=True)):
                wrong = [texts[place] for place in sorted(one ^ matching[at])]
                assert not wrong, f"{name} (seed {SEED}) on {message!r}: {wrong}\ndata {data}"
                assert answers[1][at] == made[at], f"{name} (seed {SEED}) makes otherwise of {message!r}"
        pairs += len(texts) * len(messages)
    rare = min(random_data.PRODUCTIONS, key=lambda name: matched[name])
    share = matched.total() / pairs
    with capsys.disabled():
        print(
            f"{pairs:,} triples, {len(ENGINES)} engines; {share:.0%} match; rarest production {rare!r}: "
            f"{matched[rare]:,} true, {failed[rare]:,} false"
        )
    if pairs >= 20_000:
        assert share >= 0.5
        assert all(min(matched[name], failed[name]) >= 20 for name in random_data.PRODUCTIONS)
