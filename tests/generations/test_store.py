"""Stores: generations are copied completely, verified, and swept when they are not needed."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import StoreError
from tamis.generations import numbered
from tamis.generations.manifest import FORMAT, File, Manifest, checksum, kernel_files
from tamis.generations.numbered import Subscriptions
from tamis.generations.store import Store
from tamis.model.version import Version

MESSAGE = b"<a><b x='1'/><b x='2'/></a>"


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "number": pa.array(numbers, pa.uint64()),
            "id": pa.array([f"s{number}" for number in numbers], pa.large_string()),
            "revision": pa.array([1] * len(numbers), pa.uint64()),
            "tenant": pa.array([""] * len(numbers), pa.large_string()),
            "subscriber": pa.array(["bob"] * len(numbers), pa.large_string()),
            "delivery_target": pa.array(["outbox"] * len(numbers), pa.large_string()),
        }
    )


def make(directory: Path, index: tamis.Index, before: Manifest | None, *numbers: int) -> Manifest:
    """A generation with some more subscriptions."""
    for number in numbers:
        index.insert(number, f"//b[@x = {number}]")
    made = index.snapshot(directory)
    subscriptions, removed = numbered.update(directory, before, [], [rows(*numbers)])
    names = [*kernel_files(directory, made), *subscriptions]
    files = {name: File.of(directory / name) for name in names}
    manifest = Manifest(made, "catalog", Version(made, "mark"), subscriptions, removed, files)
    manifest.write(directory)
    return manifest


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if not path.name.endswith(".lock")}


@pytest.fixture(params=["directory", "file", "elsewhere"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store in a directory, the same by URL, and one in a remote file system."""
    places = {
        "directory": f"{tmp_path}/store",
        "file": f"file://{tmp_path}/store",
        "elsewhere": "mock:///store",
    }
    return Store(places[request.param])


def test_a_generation_arrives_whole(store: Store, tmp_path: Path) -> None:
    work, cache = tmp_path / "work", tmp_path / "cache"
    assert store.newest() is None
    index = tamis.Index()
    first = make(work, index, None, 1)
    store.publish(work, first.number)
    assert store.newest() == first.number
    assert store.fetch(first.number, cache) == cache
    assert names(cache) == names(work)
    before = {path.name: path.stat().st_ino for path in cache.iterdir()}
    second = make(work, index, first, 2)
    store.publish(work, second.number)
    store.publish(work, second.number)
    assert store.newest() == second.number > first.number
    assert store.manifest(second.number) == second
    store.fetch(second.number, cache)
    store.fetch(second.number, cache)
    assert names(cache) == names(work)
    assert before.items() <= {path.name: path.stat().st_ino for path in cache.iterdir()}.items()
    opened = tamis.Index.open(cache, second.number)
    assert opened.match(MESSAGE) == [1, 2]
    found = Subscriptions.open(cache, second.number).look_up(pa.array([2, 1, 2], pa.uint64()))
    assert found.column("id").to_pylist() == ["s2", "s1", "s2"]


def test_only_a_directory_is_opened_in_place(store: Store, tmp_path: Path) -> None:
    number = make(tmp_path / "work", tamis.Index(), None, 1).number
    store.publish(tmp_path / "work", number)
    if store.directory is None:
        with pytest.raises(StoreError) as caught:
            store.fetch(number)
        assert caught.value.code == "cache-needed"
    else:
        assert store.fetch(number) == tmp_path / "store"
        assert tamis.Index.open(store.fetch(number), number).match(MESSAGE) == [1]


def test_missing_generations_are_reported(store: Store, tmp_path: Path) -> None:
    for ask in (lambda: store.manifest(7), lambda: store.fetch(7, tmp_path / "cache")):
        with pytest.raises(StoreError, match=r"generation.7") as caught:
            ask()
        assert caught.value.code == "no-generation"
    with pytest.raises(StoreError):
        store.publish(tmp_path / "work", 7)


def test_a_published_generation_is_never_rewritten(store: Store, tmp_path: Path) -> None:
    make(tmp_path / "one", tamis.Index(), None, 1)
    other = make(tmp_path / "other", tamis.Index(), None, 2)
    store.publish(tmp_path / "one", other.number)
    with pytest.raises(StoreError) as caught:
        store.publish(tmp_path / "other", other.number)
    assert caught.value.code == "generation-taken"
    cache = store.fetch(other.number, tmp_path / "cache")
    assert tamis.Index.open(cache, other.number).match(MESSAGE) == [1]


def test_a_cache_of_another_store_is_not_believed(store: Store, tmp_path: Path) -> None:
    number = make(tmp_path / "one", tamis.Index(), None, 1).number
    make(tmp_path / "other", tamis.Index(), None, 2)
    cache = Store(tmp_path / "one").fetch(number, tmp_path / "cache")
    store.publish(tmp_path / "other", number)
    store.fetch(number, cache)
    assert tamis.Index.open(cache, number).match(MESSAGE) == [2]


def test_damage_on_the_way_is_seen(tmp_path: Path) -> None:
    manifest = make(tmp_path / "work", tamis.Index(), None, 1)
    store = Store("mock:///store")
    [name] = [name for name in manifest.files if name.endswith(".texts")]
    whole = (tmp_path / "work" / name).read_bytes()
    (tmp_path / "work" / name).write_bytes(whole[:-1] + b"?")
    store.publish(tmp_path / "work", manifest.number)
    with pytest.raises(StoreError, match=name) as caught:
        store.fetch(manifest.number, tmp_path / "cache")
    assert caught.value.code == "store-damaged"
    assert Store(tmp_path / "cache").newest() is None
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith(".draft")]


def test_a_sweep_leaves_what_is_needed(store: Store, tmp_path: Path) -> None:
    work, cache = tmp_path / "work", tmp_path / "cache"
    index = tamis.Index()
    made: list[Manifest] = []
    for number in range(5):
        made.append(make(work, index, made[-1] if made else None, number))
        index.merge()
        store.publish(work, made[-1].number)
        store.fetch(made[-1].number, cache)
    mapped = tamis.Index.open(cache, made[0].number)
    for place in (store, Store(cache)):
        # Of no generation yet: a publisher may be about to use it.
        place._place.put("", "0.segment", b"")
        removed = place.sweep([made[2].number])
        assert Manifest.name(made[0].number) in removed
        assert place.sweep([made[2].number], young=0) == ["0.segment"]
        kept = [made[2], made[4]]
        expected = {Manifest.name(one.number) for one in kept} | {name for one in kept for name in one.files}
        assert {name for name in place._place.files() if not name.endswith(".lock")} == expected
        assert place.newest() == made[4].number
        assert place.sweep([])
        assert place.sweep([], young=0) == []
    assert mapped.match(MESSAGE) == []
    store.fetch(made[4].number, tmp_path / "again")
    assert tamis.Index.open(tmp_path / "again", made[4].number).match(MESSAGE) == [1, 2]


def test_a_store_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    number = make(tmp_path / "work", tamis.Index(), None, 1).number
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        Store(tmp_path / "file" / "store").publish(tmp_path / "work", number)
    assert caught.value.code == "store-unreachable"
    with pytest.raises(StoreError) as caught:
        Store("gopher://host/path")
    assert caught.value.code == "store-url"


def test_a_manifest_of_a_newer_tamis_is_refused(tmp_path: Path) -> None:
    number = make(tmp_path, tamis.Index(), None, 1).number
    path = tmp_path / Manifest.name(number)
    text = path.read_text()
    value = json.loads(text)
    del value["checksum"]
    value["format"] += 1
    newer = json.dumps(value | {"checksum": checksum(value)})
    flipped = text.replace(f'"format": {FORMAT}', f'"format": {FORMAT ^ 1}')
    for changed, code in ((newer, "store-newer"), (text[:-9], "store-damaged"), (flipped, "store-damaged")):
        path.write_text(changed)
        with pytest.raises(StoreError) as caught:
            Store(tmp_path).manifest(number)
        assert caught.value.code == code


def test_files_of_subscriptions_stay_few_and_lose_what_is_gone(tmp_path: Path) -> None:
    manifest: Manifest | None = None
    live: set[int] = set()
    most = 0
    for step in range(60):
        added = list(range(step * 500, step * 500 + 500))
        removed = [number for number in live if number % 7 == step % 7]
        names, gone = numbered.update(tmp_path, manifest, removed, [rows(*added)])
        live = (live - set(removed)) | set(added)
        manifest = Manifest(step, "catalog", Version(step, "mark"), names, gone, {})
        manifest.write(tmp_path)
        most = max(most, len(names))
        found = Subscriptions.open(tmp_path, step).look_up(pa.array(sorted(live), pa.uint64()))
        assert found.column("number").to_pylist() == sorted(live)
        assert sum(numbered.open_batch(tmp_path / name).num_rows for name in names) <= 2 * len(live)
    assert most <= 4
    with pytest.raises(StoreError) as caught:
        Subscriptions.open(tmp_path, 59).look_up(pa.array([10**9], pa.uint64()))
    assert caught.value.code == "unknown-number"
    assert Subscriptions([]).look_up(pa.array([], pa.uint64())).num_rows == 0
