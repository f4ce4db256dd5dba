"""Generations of several shards: the same matches as of one shard, whatever changes."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis import shard_files
from tamis.catalog import Catalog
from tamis.errors import GenerationError
from tamis.generations.manifest import Manifest
from tamis.generations.numbered import Subscriptions
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.sharding import Placement, Sharding
from tamis.model.subscription import NewSubscription
from tests.helpers.generations import active, shown_in

MESSAGES = [
    *(f"<a x='k{number}'><b>{number}</b><c/></a>".encode() for number in range(12)),
    b"<r><c/><d/></r>",
    b"<r/>",
]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        yield catalog


def query(number: int) -> str:
    """All classes of places: values, numbers, bounds, paths, nothing."""
    kinds = [
        f"//a[@x = 'k{number % 12}'][not(d{number})]",
        f"//b = {number % 12}",
        f"//a/b > {number % 9} and not(//e{number})",
        f"//c[not(f{number})]",
        f"not(//a/g{number})",
        f"//a/@x = 'k{number % 5}' or //d[not(h{number})]",
    ]
    return kinds[number % len(kinds)]


def put(catalog: Catalog, *numbers: int, tenant: str = "t") -> None:
    for number in numbers:
        catalog.add(NewSubscription("bob", query(number), f"s{number}", tenant))


def targets(index: tamis.Index, tenant: str = "t") -> list[list[int]]:
    batch = index.match_batch(MESSAGES, tenant=tenant)
    assert batch["code"].null_count == len(MESSAGES)
    found: list[Any] = index.targets(batch).to_pylist()
    return found


def check(catalog: Catalog, directory: Path, number: int) -> Manifest:
    """The generation matches what a plain index of the catalog does, and knows all its subscriptions."""
    plain = tamis.Index()
    with catalog.changes(None) as changes:
        for batch in changes.added:
            for row in batch.to_pylist():
                plain.insert(row["number"], row["query"], tenant=row["tenant"])
    for open_bytes in (None, 0):
        index = tamis.Index.open(directory, number, open_bytes=open_bytes)
        for tenant in ("t", "u", "nobody"):
            assert targets(index, tenant) == targets(plain, tenant)
    subscriptions = Subscriptions.open(directory, number)
    expected = active(catalog)
    numbers = tamis.Index.open(directory, number).rows().column("target")
    assert shown_in([subscriptions.look_up(numbers)]) == expected
    return Manifest.read(directory, number)


@pytest.mark.parametrize("placement", ["hash", "test"])
def test_a_catalog_is_divided_and_changes_reach_its_shards(
    catalog: Catalog, tmp_path: Path, placement: Placement
) -> None:
    generator = random.Random(7)
    put(catalog, *range(120))
    put(catalog, *range(1_000, 1_010), tenant="u")
    sharding = Sharding(placement, 16)
    with Publisher(catalog, Store(tmp_path / "store"), tmp_path / "work", sharding=sharding) as publisher:
        number = publisher.refresh()
        assert publisher.refresh() == number
        assert publisher.subscriptions == 130
        manifest = check(catalog, tmp_path / "work", number)
        assert manifest.layout is not None
        assert 8 <= len(manifest.layout.built) <= 20
        assert all(shard.rows <= 16 for shard in manifest.layout.built)
        there, following = set(range(120)), 120
        for change in range(8):
            gone = generator.sample(sorted(there), 2)
            for one in gone:
                catalog.pause(f"s{one}", tenant="t")
            there -= set(gone)
            put(catalog, following, following + 1)
            put(catalog, 9_000 + change)
            catalog.pause(f"s{9_000 + change}", tenant="t")
            there |= {following, following + 1}
            following += 2
            number = publisher.refresh()
            assert publisher.subscriptions == 130
            if change % 4 == 3:
                manifest = check(catalog, tmp_path / "work", number)
        assert manifest.layout is not None
        assert manifest.layout.latest.rows <= 8
        # Paused ones come back with their old numbers.
        for one in sorted(set(range(120)) - there)[:5]:
            catalog.resume(f"s{one}", tenant="t")
        check(catalog, tmp_path / "work", publisher.refresh())
    # Another publisher continues, also from the store.
    put(catalog, 5_000)
    with Publisher(catalog, Store(tmp_path / "store"), tmp_path / "other", sharding=sharding) as publisher:
        check(catalog, tmp_path / "other", publisher.refresh())


def test_equal_catalogs_have_equal_shards(tmp_path: Path) -> None:
    names = []
    for place in ("one", "two"):
        with Catalog(f"sqlite:///{tmp_path}/{place}.db") as catalog:
            put(catalog, *range(60))
            sharding = Sharding("test", 16)
            with Publisher(
                catalog, Store(tmp_path / place), tmp_path / place, sharding=sharding
            ) as publisher:
                layout = Manifest.read(tmp_path / place, publisher.refresh()).layout
                assert layout is not None
                names.append([shard.name for shard in layout.shards])
    assert names[0] == names[1]


def test_changed_settings_divide_the_catalog_again(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, *range(60))
    numbers = []
    for sharding in (None, Sharding("test", 16), Sharding("hash", 16), Sharding("hash", 30), None):
        with Publisher(catalog, Store(tmp_path), tmp_path, sharding=sharding) as publisher:
            numbers.append(publisher.refresh())
            manifest = check(catalog, tmp_path, numbers[-1])
            assert (manifest.layout and manifest.layout.sharding) == sharding
    assert numbers == sorted(set(numbers))


def test_some_shards_are_opened_and_a_message_for_another_is_refused(
    catalog: Catalog, tmp_path: Path
) -> None:
    put(catalog, *range(0, 120, 6))
    with Publisher(catalog, Store(tmp_path), tmp_path, sharding=Sharding("test", 4)) as publisher:
        number = publisher.refresh()
    whole = tamis.Index.open(tmp_path, number)
    visited: list[Any] = whole.route(MESSAGES, tenant="t")["shards"].to_pylist()
    last = len(whole.shards) - 1
    wanted = [*visited[0], last]
    some = tamis.Index.open(tmp_path, number, shards=wanted)
    batch = some.match_batch(MESSAGES, tenant="t")
    for place, shards in enumerate(visited):
        is_open = set(shards) <= {*wanted, last}
        assert batch["code"][place].as_py() == (None if is_open else "shard-closed")
    assert some.targets(batch).to_pylist()[0] == targets(whole)[0]
    some.insert(9_999, "//z")
    with pytest.raises(GenerationError, match="open all shards"):
        some.match(b"<a/>")
    some = tamis.Index.open(tmp_path, number, shards=wanted)
    some.advance(number, shards=range(last + 1))
    assert targets(some) == targets(whole)


def test_a_damaged_summary_lets_all_messages_visit_its_shard(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, *range(0, 120, 6))
    sharding = Sharding("test", 4)
    with Publisher(catalog, Store(tmp_path), tmp_path, sharding=sharding) as publisher:
        number = publisher.refresh()
        layout = Manifest.read(tmp_path, number).layout
        assert layout is not None
        values = [b"<a x='k0'/>", b"<a x='k6'/>"]
        visits: Any = tamis.Index.open(tmp_path, number).route(values, tenant="t")["shards"].to_pylist()
        # A shard that has only queries for the other value than those that are added.
        place = min(set(visits[1]) - set(visits[0]))
        [summary] = [name for name in layout.built[place].files if name.endswith(".summary")]
        (tmp_path / summary).write_bytes(b"damaged")
        put(catalog, 120, 132)
        number = publisher.refresh()
        layout = check(catalog, tmp_path, number).layout
        assert layout is not None
        at = [place for place, shard in enumerate(layout.built) if shard.name in layout.damaged]
        assert at
        index = tamis.Index.open(tmp_path, number)
        visited: list[Any] = index.route(MESSAGES[-1:], tenant="t")["shards"].to_pylist()
        assert set(at) <= set(visited[0])
        # One of them is built again, and with it the file that they share.
        put(catalog, 126)
        layout = check(catalog, tmp_path, publisher.refresh()).layout
        assert layout is not None
        assert layout.damaged == ()


def test_joins_with_local_data_are_found_in_all_shards(tmp_path: Path) -> None:
    queries = [
        "//trade[@symbol = collection('watch')/row/symbol]",
        "//trade[collection('watch')/row[symbol = $msg/trade/@symbol]]",
        "//trade",
        "//other",
    ]
    messages = [b"<trade symbol='SAP'/>", b"<trade symbol='X'/>", b"<other/>"]

    def attached(index: tamis.Index) -> tamis.Index:
        index.attach("watch", tamis.Data([b"<row><symbol>SAP</symbol></row>"]))
        return index

    plain = attached(tamis.Index())
    filled = [attached(tamis.Index()) for _ in [*queries, "the last, which takes the changes"]]
    for number, (index, text) in enumerate(zip(filled, queries, strict=False)):
        plain.insert(number, text)
        index.insert(number, text)
    shards = [index.write_shard(tmp_path, summary_bytes=1 << 20) for index in filled]
    routing, _ = shard_files.write_routing(tmp_path, shards[:-1])
    shard_files.write_shards(tmp_path, 0, shards, [], routing)
    for index in (plain, attached(tamis.Index.open(tmp_path, open_bytes=0))):
        batch = index.match_batch(messages)
        assert index.targets(batch).to_pylist() == [[0, 1, 2], [2], [3]]
        # What the message met counts once, not once for each shard.
        assert (batch["probes"].to_pylist(), batch["records"].to_pylist()) == ([1, 1, 0], [1, 0, 0])
        pairs = index.match_pairs(messages, [range(4)] * 3)
        assert index.targets(pairs).to_pylist() == [[0, 1, 2], [2], [3]]
    some = attached(tamis.Index.open(tmp_path, shards=[2, 3, 4]))
    codes = some.match_batch(messages)["code"].to_pylist()
    assert codes == ["shard-closed", "shard-closed", None]
    with pytest.raises(GenerationError, match="shard 0 is not open"):
        some.match_pairs(messages, [[0]] * 3)
