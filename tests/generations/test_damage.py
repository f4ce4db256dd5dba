"""Random damage of snapshots and published generations: refused, without effect, or compiled again.

A run prints its seed. By hand: `TAMIS_SEED=7 TAMIS_DAMAGES=2000 pytest tests/generations/test_damage.py`, or
`make soak`. `tests/damage.rs` does the same where no hash can tell: then every call has to come back.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import tamis
from tamis.catalog import Catalog
from tamis.errors import StoreError
from tamis.generations.damage import DAMAGE, is_lost
from tamis.generations.opener import OpenGeneration, open_generation
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.matching import Generation
from tamis.model.subscription import NewSubscription
from tests.helpers.random_runs import SEED

CASES = int(os.environ.get("TAMIS_DAMAGES") or 150)

MESSAGES = [
    b"<a><b x='1'>t</b><b x='2'><c>5</c></b></a>",
    b"<a y='2'><b x='3'><b><c>3</c></b></b></a>",
    b"<d><c x='9'>9</c></d>",
]

TENANTS = ("", "t")

Answers = list[list[tuple[int, bytes | None]]]
"""For each message and tenant, the targets with their payloads."""


def queries() -> list[str]:
    """Of all kinds, so that all parts of a segment are in use."""
    return [
        query.replace("%", str(number))
        for number in range(10)
        for query in (
            "//b[@x = %]",
            "/a/b[c > %][@x]",
            "//c[. = '%']/..",
            "//b[not(c = %)]",
            "for $v in //b where $v/c > % return <r>{$v/c}</r>",
        )
    ]


def zero(random: Random, path: Path) -> None:
    content = bytearray(path.read_bytes())
    start = random.randrange(len(content))
    end = min(len(content), start + random.choice([1, 8, 64, 512, 4096]))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)


def flip(random: Random, path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def cut(random: Random, path: Path) -> None:
    os.truncate(path, random.randrange(path.stat().st_size))


def swap(random: Random, path: Path) -> None:
    """Another file of the kind in its place."""
    others = [other for other in sorted(path.parent.glob(f"*{path.suffix}")) if other != path]
    if others:
        other = random.choice(others)
        ours, theirs = path.read_bytes(), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(ours)


def remove(_: Random, path: Path) -> None:
    path.unlink()


HARMS: list[Callable[[Random, Path], None]] = [zero, flip, cut, swap, remove]


def harm(random: Random, folders: list[Path]) -> str:
    """Damage a file or two; what was done."""
    done = []
    for _ in range(random.choice([1, 1, 2])):
        files = [path for folder in folders for path in sorted(folder.glob("*.*")) if path.suffix != ".lock"]
        path, how = random.choice(files), random.choice(HARMS)
        if path.stat().st_size:
            how(random, path)
            done.append(f"{how.__name__}{path.suffix}")
    return " ".join(done)


def answers(index: tamis.Index) -> Answers:
    found: Answers = []
    for message in MESSAGES:
        for tenant in TENANTS:
            outputs = index.transform(message, tenant=tenant)
            assert [output.target for output in outputs if output.code is not None] == []
            pairs = sorted((output.target, output.payload) for output in outputs)
            assert [target for target, _ in pairs] == index.match(message, tenant=tenant)
            found.append(pairs)
    return found


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, Answers]:
    """A folder with two generations of several segments, and what the second one answers."""
    folder = tmp_path_factory.mktemp("snapshot")
    index = tamis.Index()
    texts = queries()
    for start in (0, 30, 45):
        rows = range(start, {0: 30, 30: 45, 45: 50}[start])
        tenants = [TENANTS[row % 2] for row in rows]
        index.load(pa.table({"target": rows, "query": [texts[row] for row in rows], "tenant": tenants}))
    for target in (1, 2, 33):
        index.remove(target)
    index.snapshot(folder)
    index.remove(4)
    index.insert(99, "//b[@x]")
    number = index.snapshot(folder)
    assert len(list(folder.glob("*.segment"))) > 2
    return folder, number, answers(index)


def test_a_damaged_snapshot_is_refused_or_answers_as_before(
    snapshot: tuple[Path, int, Answers], tmp_path: Path
) -> None:
    """Also after something was added, and all was merged."""
    original, number, expected = snapshot
    outcomes: Counter[str] = Counter()
    for case in range(CASES):
        random = Random(SEED + case)
        folder = tmp_path / str(case)
        shutil.copytree(original, folder)
        done = harm(random, [folder])
        context = f"TAMIS_SEED={SEED + case} TAMIS_DAMAGES=1: {done}"
        try:
            index = tamis.Index.open(folder, number)
            assert answers(index) == expected, context
            index.insert(100, "//c")
            if random.random() < 0.5:
                index.merge()
            merged = answers(index)
            index.remove(100)
            assert answers(index) == expected, context
            assert merged != expected, context
            outcomes["no effect"] += 1
        except tamis.GenerationError as error:
            if error.code not in DAMAGE - {"kernel-panic"}:
                raise AssertionError(context) from error
            outcomes[error.code] += 1
        shutil.rmtree(folder)
    print(f"TAMIS_SEED={SEED}", dict(outcomes))
    if CASES >= 150:
        assert {"segment-damaged", "snapshot-damaged", "no effect"} <= set(outcomes)


class Worker:
    """Opens generations as a Python worker does: the last one stays open."""

    def __init__(self, store: Store, cache: Path | None) -> None:
        self._store = store
        self._cache = None if cache is None else str(cache)
        self._open: OpenGeneration | None = None

    def delivered(self, number: int) -> Answers:
        """The results for the messages: numbers of subscriptions, and payloads."""
        generation = Generation(self._store.url, number, stored=True, cache=self._cache)
        self._open = opened = open_generation(generation, self._open)
        found = answers(opened.index)
        for pairs in found:
            targets = pa.array([target for target, _ in pairs], pa.uint64())
            rows = opened.subscriptions.look_up(targets).to_pylist()
            assert [row["id"] for row in rows] == [f"s{target}" for target, _ in pairs]
        return found


def test_damage_between_runs_is_repaired(tmp_path: Path) -> None:
    """In the store, in the publisher's directory and in the cache of a host."""
    outcomes: Counter[str] = Counter()
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        for number, text in enumerate(queries(), 1):
            catalog.add(NewSubscription("bob", text, f"s{number}", TENANTS[number % 2]))
        # Ids tell the numbers, so that a row that is another's is noticed.
        assert [catalog.get(f"s{number}", tenant=TENANTS[number % 2]).number for number in (1, 50)] == [1, 50]
        template, cache = tmp_path / "template", tmp_path / "run" / "cache"
        store = Store(template / "store")
        with Publisher(catalog, store, template / "work") as publisher:
            first = publisher.refresh()
        expected = Worker(store, None).delivered(first)
        for case in range(CASES // 5):
            random = Random(SEED + case)
            run = tmp_path / "run"
            # Without hard links: each place can be damaged by itself.
            shutil.copytree(template, run)
            store = Store(run / "store")
            assert Worker(store, cache).delivered(first) == expected
            places = [run / "store", run / "work", store.cache_in(cache)]
            done = harm(random, random.choice([places, places[:2], places[:1]]))
            context = f"TAMIS_SEED={SEED + case}: {done}"
            attempts, worker = 0, Worker(store, cache)
            with Publisher(catalog, store, run / "work", first) as publisher:
                while True:
                    attempts += 1
                    assert attempts < 4, context
                    number = publisher.refresh()
                    try:
                        assert worker.delivered(number) == expected, context
                        break
                    except (tamis.GenerationError, StoreError) as error:
                        if not is_lost(error):
                            raise AssertionError(context) from error
                        publisher.remove_damaged()
                outcomes["repaired" if number == first else "compiled again"] += 1
                assert publisher.has(number)
            shutil.rmtree(run)
    print(f"TAMIS_SEED={SEED}", dict(outcomes))


def cut_in_half(folder: Path, suffix: str) -> None:
    for path in folder.glob(f"*.{suffix}"):
        os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("suffix", ["segment", "texts"])
def test_a_file_that_is_cut_short_does_not_end_the_process(
    snapshot: tuple[Path, int, Answers], tmp_path: Path, suffix: str
) -> None:
    original, number, expected = snapshot
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    index = tamis.Index.open(tmp_path, number)
    assert answers(index) == expected
    assert not index.damaged
    cut_in_half(tmp_path, suffix)
    for use in (
        lambda: index.match(MESSAGES[0]),
        lambda: index.match_batch(MESSAGES),
        lambda: index.match_elements(MESSAGES),
        lambda: index.transform(MESSAGES[0]),
        lambda: index.explain(MESSAGES[0], "//b"),
        index.merge,
        lambda: index.snapshot(tmp_path / "other"),
    ):
        with pytest.raises(tamis.GenerationError, match="segment-damaged"):
            use()
    assert index.damaged


def test_a_running_publisher_compiles_again_what_is_damaged_under_it(tmp_path: Path) -> None:
    """Whatever it has mapped itself."""
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        catalog.add(NewSubscription("bob", "//b", "s1"))
        store = Store(tmp_path / "work")
        with Publisher(catalog, store, tmp_path / "work") as publisher:
            first = publisher.refresh()
            for suffix in ("segment", "texts"):
                cut_in_half(tmp_path / "work", suffix)
                catalog.add(NewSubscription("bob", "//b", f"after-{suffix}"))
                number = publisher.refresh()
                assert number > first
                first = number
            opened = open_generation(Generation(store.url, number, stored=True))
            assert opened.index.match(MESSAGES[0]) == [1, 2, 3]


def test_a_cache_that_was_damaged_under_a_worker_is_fetched_again(tmp_path: Path) -> None:
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        catalog.add(NewSubscription("bob", "for $v in //b return $v", "s1"))
        store = Store(tmp_path / "store")
        with Publisher(catalog, store, tmp_path / "work") as publisher:
            number = publisher.refresh()
    cache = store.cache_in(tmp_path / "cache")
    shutil.copytree(tmp_path / "store", cache)
    generation = Generation(store.url, number, stored=True, cache=str(tmp_path / "cache"))
    opened = open_generation(generation)
    (texts,) = cache.glob("*.texts")
    content = texts.read_bytes()
    texts.write_bytes(content.replace(b"for", b"foR"))
    with pytest.raises(tamis.GenerationError, match="segment-damaged"):
        opened.index.transform(MESSAGES[0])
    again = open_generation(generation, opened)
    assert again.index is not opened.index
    assert texts.read_bytes() == content
    assert len(again.index.transform(MESSAGES[0])) == 1
