"""From the catalog to generations: their content, the copied files, and recovery."""

import json
import logging
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.catalog import Catalog
from tamis.errors import StoreError
from tamis.generations import compiled
from tamis.generations import publisher as publisher_module
from tamis.generations.manifest import Manifest
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription, PrefixMap, State
from tests.helpers import ROOT
from tests.helpers.generations import active, backup, shown, unexpected, version_of


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


@pytest.fixture(params=["apart", "in place", "elsewhere"])
def publisher(request: pytest.FixtureRequest, catalog: Catalog, tmp_path: Path) -> Iterator[Publisher]:
    """Publishers to another directory, to the own working directory, and to a remote store."""
    places = {"apart": f"{tmp_path}/store", "in place": f"{tmp_path}/work", "elsewhere": "mock:///store"}
    with Publisher(catalog, Store(places[request.param]), tmp_path / "work") as publisher:
        yield publisher


def put(catalog: Catalog, *ids: str, query: str = "/a", tenant: str = "", subscriber: str = "bob") -> None:
    for id in ids:
        catalog.add(NewSubscription(subscriber, query, id, tenant))


def test_an_empty_catalog_gives_a_generation(catalog: Catalog, publisher: Publisher, tmp_path: Path) -> None:
    number = publisher.refresh()
    assert publisher.refresh() == number
    assert publisher.store.newest() == number
    assert shown(publisher.store, number, tmp_path / "cache") == {}


def test_generations_show_the_catalog(catalog: Catalog, publisher: Publisher, tmp_path: Path) -> None:
    """Random changes, each followed by a generation that shows them."""
    choose = random.Random(5)
    catalog.put_prefixes(PrefixMap("m", {"p": "urn:0"}, "t"))
    numbers = [publisher.refresh()]
    for step in range(40):
        id, tenant = f"s{choose.randrange(20)}", choose.choice(["", "t"])
        match choose.randrange(6):
            case 0 | 1:
                asked = NewSubscription(f"u{step}", "/a[not(b)]", id, tenant)
                catalog.import_([(1, asked)], unexpected)
            case 2:
                catalog.remove(id, tenant=tenant)
            case 3:
                put(catalog, f"new{step}", query=f"not(/b{step})", tenant=tenant)
            case 4:
                asked = NewSubscription("al", "not(//p:b)", f"p{step}", "t", "m")
                catalog.add(asked)
                catalog.put_prefixes(PrefixMap("m", {"p": f"urn:{step}"}, "t"))
            case 5:
                for one in catalog.list(limit=3):
                    (catalog.pause if choose.random() < 0.5 else catalog.resume)(one.id, tenant=one.tenant)
        numbers.append(publisher.refresh())
        assert shown(publisher.store, numbers[-1], tmp_path / "cache") == active(catalog)
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 30


def test_prefixes_hold_in_the_index(catalog: Catalog, publisher: Publisher, tmp_path: Path) -> None:
    catalog.add(NewSubscription("bob", "/p:a", "own", namespaces={"p": "urn:1"}))
    catalog.put_prefixes(PrefixMap("m", {"p": "urn:2"}))
    catalog.add(NewSubscription("bob", "/p:a", "shared", namespaces="m"))
    put(catalog, "none")
    number = publisher.refresh()
    index = tamis.Index.open(publisher.store.fetch(number, tmp_path / "cache"), number)
    for message, id in ((b"<a/>", "none"), (b"<a xmlns='urn:1'/>", "own"), (b"<a xmlns='urn:2'/>", "shared")):
        assert index.match(message) == [catalog.get(id).number]


def test_changes_without_effect_make_no_generation(catalog: Catalog, publisher: Publisher) -> None:
    put(catalog, "x")
    number = publisher.refresh()
    catalog.put_prefixes(PrefixMap("m", {}))
    catalog.add(NewSubscription("bob", "/a", "y", state=State.PAUSED))
    assert publisher.refresh() == number
    catalog.pause("x")
    catalog.resume("x")
    catalog.pause("x")
    assert publisher.refresh() > number


def test_the_working_directory_may_be_lost(catalog: Catalog, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    put(catalog, "x", "y")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        first = publisher.refresh()
    before = {path.name for path in (tmp_path / "store").iterdir()}
    shutil.rmtree(tmp_path / "work")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        assert publisher.refresh() == first
        # Nothing was compiled: all there is came from the store.
        assert {path.name for path in (tmp_path / "work").iterdir()} - {".publisher.lock"} == before
        catalog.remove("x")
        assert publisher.refresh() > first
    shutil.rmtree(tmp_path / "store")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        number = publisher.refresh()
        assert shown(store, number, tmp_path / "cache") == active(catalog)


@pytest.mark.parametrize("place", ["store", "work"])
def test_numbers_continue_after_the_store_is_lost(catalog: Catalog, tmp_path: Path, place: str) -> None:
    store = Store(tmp_path / place)
    put(catalog, "x", "y")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        publisher.refresh()
        catalog.remove("x")
        last = publisher.refresh()
        assert publisher.has(last)
    for lost in (tmp_path / "store", tmp_path / "work"):
        shutil.rmtree(lost, ignore_errors=True)
    with Publisher(catalog, store, tmp_path / "work", last) as publisher:
        number = publisher.refresh()
        assert number == last + 1
        assert publisher.refresh() == number
        assert shown(store, number, tmp_path / "cache") == active(catalog)
        assert not publisher.has(last)
        put(catalog, "z")
        assert publisher.refresh() == number + 1
    # The newest alone is lost, or never was there.
    with Publisher(catalog, store, tmp_path / "work", number + 9) as publisher:
        assert publisher.refresh() == number + 10
        assert shown(store, number + 10, tmp_path / "cache") == active(catalog)
    with Publisher(catalog, store, tmp_path / "work", number + 10) as publisher:
        assert publisher.refresh() == number + 10


def test_another_catalog_starts_from_nothing_under_new_numbers(catalog: Catalog, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    put(catalog, "x", "y")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        first = publisher.refresh()
    with Catalog(f"{tmp_path}/other.db") as other:
        # The same queries under the same numbers, but of other subscriptions.
        put(other, "x", "y", subscriber="al")
        with Publisher(other, store, tmp_path / "work") as publisher:
            second = publisher.refresh()
            assert second > first
            assert publisher.refresh() == second
        assert shown(store, second, tmp_path / "cache") == active(other)
        with Publisher(other, store, tmp_path / "work") as publisher:
            assert publisher.refresh() == second
    assert shown(store, first, tmp_path / "cache") == active(catalog)


def test_a_compacted_catalog_starts_from_nothing(catalog: Catalog, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    put(catalog, "x", "y")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        first = publisher.refresh()
        catalog.remove("x")
        catalog.compact(catalog.version.count)
        second = publisher.refresh()
        assert second > first
        assert shown(store, second, tmp_path / "cache") == active(catalog)


def test_old_entries_of_the_log_are_deleted(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "KEPT_VERSIONS", 3)
    with Publisher(catalog, Store(tmp_path / "work"), tmp_path / "work") as publisher:
        for number in range(6):
            put(catalog, f"s{number}")
            catalog.remove(f"s{number}")
            publisher.refresh()
    assert version_of(catalog, 8).mark == ""
    with catalog.changes(version_of(catalog, 9)) as changes:
        assert changes.since is not None


def test_one_publisher_for_a_directory(catalog: Catalog, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with Publisher(catalog, store, tmp_path / "work"):
        with pytest.raises(StoreError) as caught:
            Publisher(catalog, store, tmp_path / "work")
        assert caught.value.code == "publisher-busy"


def test_two_publishers_of_one_store_continue_each_others_generations(
    catalog: Catalog, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    numbers = []
    with (
        Publisher(catalog, store, tmp_path / "one") as one,
        Publisher(catalog, store, tmp_path / "two") as two,
    ):
        for number in range(6):
            put(catalog, f"s{number}")
            numbers.append((one if number % 2 else two).refresh())
            assert shown(store, numbers[-1], tmp_path / "cache") == active(catalog)
    assert numbers == sorted(set(numbers))


def test_a_store_that_was_away_gets_what_it_missed(catalog: Catalog, tmp_path: Path) -> None:
    store = Store(tmp_path / "disk" / "store")
    (tmp_path / "disk").write_text("not mounted")
    put(catalog, "x")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        for _ in range(2):
            with pytest.raises(StoreError) as caught:
                publisher.refresh()
            assert caught.value.code == "store-unreachable"
        (tmp_path / "disk").unlink()
        number = publisher.refresh()
    assert shown(store, number, tmp_path / "cache") == active(catalog)


def test_few_additions_to_many_ship_small_files(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    def sizes() -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (tmp_path / "store").iterdir()}

    def add(catalog: Catalog, start: int, count: int) -> None:
        given = (
            NewSubscription(f"u{number % 9}", f"//b[@x = {number}]/c{number % 50}", f"s{number}")
            for number in range(start, start + count)
        )
        assert catalog.import_(enumerate(given), unexpected).added == count

    with (
        Catalog(f"{tmp_path}/catalog.db") as catalog,
        Publisher(catalog, store, tmp_path / "work") as publisher,
    ):
        add(catalog, 0, 100_000)
        publisher.refresh()
        before = sizes()
        for step in range(5):
            add(catalog, 100_000 + 1000 * step, 1000)
            number = publisher.refresh()
            after = sizes()
            shipped = sum(size for name, size in after.items() if name not in before)
            assert shipped * 10 < sum(before.values())
            assert before.items() <= after.items()
            before = after
        manifest = Manifest.read(tmp_path / "store", number)
        assert len(manifest.subscriptions) <= 3
        index = tamis.Index.open(tmp_path / "store", number)
        assert index.stats().targets == 105_000
        assert index.match(b"<b x='104999'><c49/></b>") == [105_000]


def test_a_query_that_is_none_any_more_is_left_out(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As when another tamis, with a larger language, wrote to the catalog."""
    texts = {"id": ["x", "y"], "tenant": ["t", "t"], "query": ["//a[", "/a"], "prefixes": ["{}", "{}"]}
    columns = {name: pa.array(values, pa.large_string()) for name, values in texts.items()}
    batch = pa.record_batch({"number": pa.array([1, 2], pa.uint64()), **columns})
    index = tamis.Index()
    with caplog.at_level(logging.WARNING):
        compiled.load_rows(index, batch)
    assert index.match(b"<a/>", tenant="t") == [2]
    assert "subscription x of tenant 't' is left out: syntax" in caplog.text


def test_a_refresh_killed_anywhere_leaves_whole_generations() -> None:
    """A child process kills itself at each of its file operations in turn."""
    command = [sys.executable, "-m", "tests.helpers.refresh_killed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 20


@pytest.mark.parametrize("place", ["store", "work"])
def test_segments_of_another_format_are_compiled_again(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an upgrade: no store is emptied by hand, and numbers continue."""
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        put(catalog, "s1", "s2")
        store = Store(tmp_path / place)
        with Publisher(catalog, store, tmp_path / "work") as publisher:
            old = publisher.refresh()
        for segment in tmp_path.rglob("*.segment"):
            magic, content = segment.read_bytes()[:8], segment.read_bytes()
            older = magic + (1).to_bytes(4, "little") + content[12:]
            segment.unlink()
            segment.write_bytes(older)
        put(catalog, "s3")
        with Publisher(catalog, store, tmp_path / "work") as publisher, caplog.at_level(logging.WARNING):
            number = publisher.refresh()
            assert number > old
            assert publisher.refresh() == number
            assert publisher.subscriptions == 3
        assert "cannot be continued" in caplog.text
        assert shown(store, number, tmp_path / "cache") == active(catalog)
        # Later changes are compiled as usual.
        put(catalog, "s4")
        with Publisher(catalog, store, tmp_path / "work") as publisher:
            assert shown(store, publisher.refresh(), tmp_path / "cache") == active(catalog)


def truncate(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("place", ["store", "work"])
@pytest.mark.parametrize("harm", [truncate, Path.unlink])
@pytest.mark.parametrize("suffix", ["segment", "texts", "manifest", "json", "arrow"])
def test_damaged_files_are_compiled_again(
    tmp_path: Path, place: str, harm: Callable[[Path], None], suffix: str
) -> None:
    """Any file, in the store or the directory, also if nothing has changed since."""
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        put(catalog, "s1", "s2")
        store = Store(tmp_path / place)
        with Publisher(catalog, store, tmp_path / "work") as publisher:
            old = publisher.refresh()
        for path in [*tmp_path.glob(f"work/*.{suffix}"), *tmp_path.glob(f"store/*.{suffix}")]:
            harm(path)
        for _ in range(2):
            with Publisher(catalog, store, tmp_path / "work", old) as publisher:
                number = publisher.refresh()
                assert number > old
                assert publisher.has(number)
            assert shown(store, number, tmp_path / "cache") == active(catalog)
        put(catalog, "s3")
        with Publisher(catalog, store, tmp_path / "work", old) as publisher:
            assert shown(store, publisher.refresh(), tmp_path / "cache") == active(catalog)
        store.sweep([], young=0)
        assert store.newest() == number + 1


def test_a_store_that_is_lost_under_a_publisher_is_made_again(catalog: Catalog, tmp_path: Path) -> None:
    store = Store(tmp_path / "work")
    put(catalog, "x")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        first = publisher.refresh()
        for path in (tmp_path / "work").glob("*.*"):
            if path.suffix != ".lock":
                path.unlink()
        assert not publisher.has(first)
        publisher.forget()
        assert publisher.refresh() == first + 1
        assert shown(store, first + 1, tmp_path / "cache") == active(catalog)


def test_each_store_has_its_own_cache(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert one.cache_in(tmp_path) != two.cache_in(tmp_path)
    assert one.cache_in(tmp_path) == Store(tmp_path / "one").cache_in(tmp_path)


def test_a_restored_catalog_is_compiled_again(
    catalog: Catalog, publisher: Publisher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Versions and numbers are reused: the store has other subscriptions under them."""
    put(catalog, "s0", tenant="t")
    restore = backup(catalog)
    for id in ("old0", "old1", "old2"):
        put(catalog, id, tenant="t")
        last = publisher.refresh()
    restore()
    put(catalog, "new0", "new1", "new2", "new3", "new4")
    with caplog.at_level(logging.WARNING):
        number = publisher.refresh()
        assert caplog.text.count("compiling the whole catalog") == 1
        assert number == last + 1
        assert shown(publisher.store, number, tmp_path / "cache") == active(catalog)
        # Later changes are compiled as usual.
        assert publisher.refresh() == number
        put(catalog, "new5")
        number = publisher.refresh()
        assert caplog.text.count("compiling the whole catalog") == 1
    assert shown(publisher.store, number, tmp_path / "cache") == active(catalog)


@pytest.mark.parametrize("since", [0, 1, 3])
@pytest.mark.parametrize("place", ["store", "work"])
def test_no_tenant_gets_what_is_anothers_after_a_restore(
    catalog: Catalog, tmp_path: Path, place: str, since: int
) -> None:
    """The catalog is then before the version that the store shows, at it, or after it."""
    store = Store(tmp_path / place)
    put(catalog, "s0", tenant="t")
    restore = backup(catalog)
    given = (NewSubscription("al", "/a", f"old{number}", "t") for number in range(8_000))
    assert catalog.import_(enumerate(given), unexpected).added == 8_000
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        last = publisher.refresh()
    assert catalog.version.count == 2
    restore()
    put(catalog, *(f"new{number}" for number in range(since)))
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        number = publisher.refresh()
        assert number == last + 1
        assert publisher.refresh() == number
    expected = active(catalog)
    assert sorted(tenant for tenant, *_ in expected.values()) == [""] * since + ["t"]
    assert shown(store, number, tmp_path / "cache") == expected
    index = tamis.Index.open(tmp_path / "cache", number)
    assert index.match(b"<a/>") == [catalog.get(f"new{number}").number for number in range(since)]


def test_a_version_without_a_generation_is_distinguished_from_a_restored_one(
    catalog: Catalog, publisher: Publisher, tmp_path: Path
) -> None:
    put(catalog, "x")
    number = publisher.refresh()
    restore = backup(catalog)
    catalog.put_prefixes(PrefixMap("m", {}))
    assert publisher.refresh() == number
    restore()
    put(catalog, "y")
    number = publisher.refresh()
    assert shown(publisher.store, number, tmp_path / "cache") == active(catalog)


@pytest.mark.parametrize("place", ["store", "work"])
def test_after_a_manifest_without_a_mark_the_whole_catalog_is_compiled(
    catalog: Catalog, tmp_path: Path, place: str
) -> None:
    """As an older tamis wrote it: it can be read, and the whole catalog is compiled once."""
    store = Store(tmp_path / place)
    put(catalog, "x", "y")
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        old = publisher.refresh()
    for path in tmp_path.rglob(Manifest.name(old)):
        value = json.loads(path.read_bytes())
        value |= {"format": 1, "version": value["version"]["count"]}
        del value["checksum"]
        path.unlink()
        path.write_text(json.dumps(value))
    assert store.manifest(old).version.count == 2
    assert shown(store, old, tmp_path / "cache") == active(catalog)
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        number = publisher.refresh()
        assert number == old + 1
    assert shown(store, number, tmp_path / "cache") == active(catalog)
    with Publisher(catalog, store, tmp_path / "work") as publisher:
        assert publisher.refresh() == number
