"""The index as it changes: inserts, removals, loads, tenants, merges, snapshots, against a model."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import tamis
from tests.helpers import random_documents as documents
from tests.helpers import random_queries as queries
from tests.helpers.engines import naive

MESSAGE = b"<a><b x='1'>t</b><b x='2'/></a>"


def test_insert_and_remove_are_seen_by_the_next_match() -> None:
    index = tamis.Index()
    assert index.match(MESSAGE) == []
    index.insert(5, "//b")
    assert index.match(MESSAGE) == [5]
    index.insert(3, "/a[b/@x = 2]")
    assert index.match(MESSAGE) == [3, 5]
    assert index.remove(5)
    assert not index.remove(5)
    assert index.match(MESSAGE) == [3]
    index.insert(3, "//c")
    assert index.match(MESSAGE) == []


def test_equal_queries_are_one_query_with_many_targets() -> None:
    index = tamis.Index()
    assert index.insert(1, "//b[@x and @x]") == index.insert(2, "//b[@x]") == tamis.check("//b[@x]").id
    batch = index.match_batch([MESSAGE])
    assert batch["queries"].to_pylist() == [[0]]
    assert index.targets(batch).to_pylist() == [[1, 2]]


def test_targets_are_any_64_bits() -> None:
    index = tamis.Index()
    largest = (1 << 64) - 1
    index.insert(largest, "//b")
    index.insert(0, "//b")
    assert index.match(MESSAGE) == [0, largest]
    with pytest.raises(OverflowError):
        index.insert(-1, "//b")
    with pytest.raises(OverflowError):
        index.insert(1 << 64, "//b")


def test_a_load_reports_refused_rows_and_takes_the_rest() -> None:
    index = tamis.Index()
    table = pa.table({"target": [1, 2, 3, 4], "query": ["//b", "//b[", None, "/a"]})
    refused = index.load(table).to_pylist()
    assert [(row["row"], row["code"]) for row in refused] == [(1, "syntax"), (2, "empty")]
    assert (refused[0]["offset"], refused[0]["line"], refused[0]["column"]) == (4, 1, 5)
    assert index.match(MESSAGE) == [1, 4]


def test_a_long_load_gives_each_target_its_first_good_query() -> None:
    # Longer than what is parsed at once. Every 100th row is refused, and every target of the first rows comes
    # again in the last ones: there it counts only where it was refused before.
    count, again = 5_000, 1_000
    good, bad = "//b", "//b["
    queries = [bad if row % 100 == 7 else good for row in range(count)]
    targets = [*range(count), *range(again)]
    index = tamis.Index()
    refused = index.load(pa.table({"target": targets, "query": [*queries, *["/a"] * again]})).to_pylist()
    expected = [(row, "syntax") for row in range(count) if row % 100 == 7]
    expected += [(count + row, "duplicate-target") for row in range(again) if row % 100 != 7]
    assert [(row["row"], row["code"]) for row in refused] == expected
    assert "give each target once" in refused[-1]["reason"]
    assert index.match(b"<x><b/></x>") == [row for row in range(count) if row % 100 != 7]
    assert index.match(b"<a/>") == [row for row in range(again) if row % 100 == 7]


def test_a_load_takes_batches_chunks_and_string_views() -> None:
    batch = pa.record_batch(
        {"target": pa.array([1], pa.int32()), "query": pa.array(["//b"], pa.string_view())}
    )
    index = tamis.Index()
    assert index.load(batch).num_rows == 0
    chunks = [pa.table({"target": [2], "query": ["/a"]}), pa.table({"target": [1], "query": ["/c"]})]
    table = pa.concat_tables(chunks)
    assert index.load(table).num_rows == 0
    assert index.match(MESSAGE) == [2]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"query": ["//b"]}),
        pa.table({"target": [1]}),
        pa.table({"target": [1], "query": [1]}),
        pa.table({"target": pa.array([None], pa.uint64()), "query": ["//b"]}),
    ],
)
def test_a_table_of_another_shape_is_refused_whole(table: pa.Table) -> None:
    index = tamis.Index()
    with pytest.raises((TypeError, ValueError)):
        index.load(table)
    index.insert(1, "//b")
    assert index.match(MESSAGE) == [1]


def test_the_rows_of_a_load_may_have_different_prefixes() -> None:
    maps = [{}, {"p": "urn:p"}, {"p": "urn:q", "": "urn:p"}]
    columns = {"target": [0, 1, 2, 3], "query": ["//a", "//p:a", "//p:a", "//a"]}
    prefixes = pa.array([0, 1, 2, 2], pa.uint32())
    index = tamis.Index()
    assert index.load(pa.table({**columns, "prefixes": prefixes}), namespaces=maps).num_rows == 0
    assert index.match(b"<a/>") == [0]
    assert index.match(b"<a xmlns='urn:p'/>") == [1, 3]
    assert index.match(b"<a xmlns='urn:q'/>") == [2]
    with pytest.raises(ValueError, match="`prefixes` must be places in the list"):
        index.load(pa.table({**columns, "prefixes": prefixes}), namespaces=maps[:2])


def test_tenants_see_only_their_own() -> None:
    index = tamis.Index()
    index.insert(1, "//b", tenant="one")
    index.load(pa.table({"target": [2, 3], "query": ["//b", "/a"], "tenant": ["two", "one"]}))
    index.insert(4, "//b")
    assert index.match(MESSAGE, tenant="one") == [1, 3]
    assert index.match(MESSAGE, tenant="two") == [2]
    assert index.match(MESSAGE, tenant="three") == []
    assert index.match(MESSAGE) == [4]


def test_a_bad_message_disturbs_no_other() -> None:
    index = tamis.Index()
    index.insert(1, "//b")
    batch = index.match_batch([MESSAGE, b"<a>", None, MESSAGE])
    assert batch["code"].to_pylist() == [None, "unclosed-element", "no-message", None]
    assert index.targets(batch).to_pylist() == [[1], [], [], [1]]
    with pytest.raises(tamis.ReadError) as caught:
        index.match(b"<a>\n</b>")
    assert (caught.value.code, caught.value.line, caught.value.column) == ("mismatched-tag", 2, 1)


def test_a_bad_query_leaves_the_index_as_it_was() -> None:
    index = tamis.Index()
    index.insert(1, "//b")
    with pytest.raises(tamis.QueryError):
        index.insert(1, "//b[")
    assert index.match(MESSAGE) == [1]


def test_limits_are_per_call() -> None:
    index = tamis.Index()
    index.insert(1, "//b")
    with pytest.raises(tamis.ReadError) as caught:
        index.match(MESSAGE, limits=tamis.Limits(depth=1))
    assert (caught.value.code, caught.value.value, caught.value.limit) == ("depth-limit", 2, 1)
    assert index.match(MESSAGE) == [1]


def test_matches_of_an_old_generation_still_lead_to_their_targets() -> None:
    index = tamis.Index()
    index.insert(1, "//b")
    index.insert(2, "//c")
    batch = index.match_batch([MESSAGE])
    index.remove(2)
    index.insert(3, "/a")
    index.merge()
    assert index.targets(batch).to_pylist() == [[1]]
    for target in range(10, 30):
        index.insert(target, "/z")
        index.match(MESSAGE)
    with pytest.raises(tamis.GenerationError, match="old-generation"):
        index.targets(batch)


def test_errors_survive_pickling() -> None:
    with pytest.raises(tamis.QueryError) as caught:
        tamis.check("a" + "[b" * 100)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.code, copy.limit, str(copy)) == (caught.value.code, caught.value.limit, str(caught.value))


class Model:
    """A model of an index: a dict, and the naive evaluator."""

    def __init__(self, messages: list[bytes]) -> None:
        self.messages = messages
        self.held: dict[int, tuple[str, str]] = {}
        self.truth: dict[str, set[int]] = {}

    def matching(self, text: str) -> set[int]:
        """The messages that a query matches."""
        if text not in self.truth:
            answer = naive([text], self.messages, documents.NAMESPACES)
            self.truth[text] = {place for place, matched in enumerate(answer) if matched}
        return self.truth[text]

    def expected(self, tenant: str) -> list[list[int]]:
        own = sorted((target, text) for target, (of, text) in self.held.items() if of == tenant)
        places = range(len(self.messages))
        return [[target for target, text in own if place in self.matching(text)] for place in places]


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_against_a_model(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    roots = [documents.document(random) for _ in range(6)]
    messages = [documents.serialise(random, root) for root in roots]
    pool = []
    for number in range(250):
        root = random.choice(roots)
        witness = random.choice([root, *root.descendants()])
        production = queries.PRODUCTIONS[number % len(queries.PRODUCTIONS)]
        pool.append(queries.query(random, witness, production).text)
    model = Model(messages)
    index = tamis.Index(cache_bytes=random.choice((0, 1 << 16, 64 << 20)))

    def insert() -> None:
        target, text, tenant = random.randrange(120), random.choice(pool), random.choice(("", "t"))
        index.insert(target, text, tenant=tenant, namespaces=documents.NAMESPACES)
        model.held[target] = (tenant, text)

    def remove() -> None:
        target = random.randrange(120)
        assert index.remove(target) == (model.held.pop(target, None) is not None)

    def load() -> None:
        targets = random.sample(range(120), random.randint(1, 40))
        rows = [(target, random.choice(pool), random.choice(("", "t"))) for target in targets]
        columns = [list(column) for column in zip(*rows, strict=True)]
        table = pa.table(dict(zip(("target", "query", "tenant"), columns, strict=True)))
        assert index.load(table, namespaces=documents.NAMESPACES).num_rows == 0
        model.held.update((target, (tenant, text)) for target, text, tenant in rows)

    def merge() -> None:
        index.merge()

    def reopen() -> None:
        nonlocal index
        generation = index.snapshot(tmp_path)
        index = tamis.Index.open(tmp_path, random.choice((None, generation)))

    def match() -> None:
        for tenant in ("", "t"):
            batch = index.match_batch(messages, tenant=tenant)
            assert index.targets(batch).to_pylist() == model.expected(tenant)

    deeds: list[Callable[[], None]] = [
        *[insert] * 12,
        *[remove] * 8,
        *[load] * 2,
        merge,
        reopen,
        *[match] * 3,
    ]
    for _ in range(250):
        random.choice(deeds)()
    match()


def test_threads_match_while_others_change() -> None:
    index = tamis.Index()
    index.load(pa.table({"target": range(1000), "query": [f"/a/b[@x = {n % 7}]" for n in range(1000)]}))
    always = {n for n in range(1000) if n % 7 in (1, 2)}
    failures: list[str] = []
    done = threading.Event()

    def matching() -> None:
        while not done.is_set():
            batch = index.match_batch([MESSAGE] * 20)
            for targets in index.targets(batch).to_pylist():
                if not always <= set(targets or ()) <= always | set(range(1000, 1200)):
                    failures.append("a match is wrong")

    def changing(first: int) -> None:
        for target in range(first, first + 100):
            index.insert(target, "//b")
            if target % 3 == 0:
                index.remove(target)

    matchers = [threading.Thread(target=matching) for _ in range(3)]
    changers = [threading.Thread(target=changing, args=(first,)) for first in (1000, 1100)]
    for thread in (*matchers, *changers):
        thread.start()
    for thread in changers:
        thread.join()
    done.set()
    for thread in matchers:
        thread.join()
    assert not failures
    assert set(index.match(MESSAGE)) == always | {n for n in range(1000, 1200) if n % 3}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_while_matching_and_loading() -> None:
    """A child that is forked in the middle of it all can match, and ends."""
    index = tamis.Index()
    rows = pa.table({"target": range(5000), "query": [f"//b[@x = {n}]" for n in range(5000)]})
    index.load(rows)
    done = threading.Event()

    def matching() -> None:
        while not done.is_set():
            index.match_batch([MESSAGE] * 200)

    def loading() -> None:
        while not done.is_set():
            index.insert(9999, "/z")
            index.load(rows)

    threads = [threading.Thread(target=work) for work in (matching, matching, loading)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            child = os.fork()
            if child == 0:
                right = index.targets(index.match_batch([MESSAGE])).to_pylist() == [[1, 2]]
                os._exit(0 if right else 1)
            assert ended_well(child)
    finally:
        done.set()
        for thread in threads:
            thread.join()


def ended_well(child: int, seconds: float = 20.0) -> bool:
    """Wait for a child; one that hangs is ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def test_a_merge_looks_up_tenants_by_number() -> None:
    count = 100_000
    index = tamis.Index()
    index.load(
        pa.table(
            {
                "target": range(count),
                "query": [f"//a[@x = '{number % 100}']" for number in range(count)],
                "tenant": [f"tenant {number}" for number in range(count)],
            }
        )
    )
    index.merge()
    assert index.match(b"<a x='7'/>", tenant="tenant 107") == [107]
    assert index.match(b"<a x='7'/>", tenant="tenant 108") == []


def test_targets_of_one_query_are_removed_together() -> None:
    count = 400_000
    index = tamis.Index()
    index.load(pa.table({"target": range(count), "query": ["//a"] * count}))
    for target in range(count // 2 - 1):
        index.remove(target)
    assert len(index.match(b"<a/>")) == count // 2 + 1
