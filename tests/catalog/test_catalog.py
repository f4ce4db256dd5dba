"""The calls of the catalog, in each database, and the errors they raise."""

import dataclasses
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import sqlalchemy as sa

import tamis
from tamis.catalog import Catalog, database, schema
from tamis.errors import CatalogError
from tamis.model import subscription_lines as lines
from tamis.model.subscription import Imported, NewSubscription, PrefixMap, Refusal, State
from tests.helpers.generations import unexpected, version_of
from tests.helpers.servers import Postgres, free_port


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def asked(id: str | None = None, query: str = "//a", **more: object) -> NewSubscription:
    return dataclasses.replace(NewSubscription("bob", query, id), **more)  # type: ignore[arg-type]


def imported(catalog: Catalog, *items: Mapping[str, object] | str) -> tuple[Imported, list[Refusal]]:
    """Import lines: how many, and the refused."""
    texts = [item if isinstance(item, str) else json.dumps(item) for item in items]
    refusals: list[Refusal] = []
    done = catalog.import_(lines.read(texts), refusals.append)
    assert done.refused == len(refusals)
    return done, refusals


def followed(catalog: Catalog, since: int | None) -> tuple[list[int], dict[int, str], int]:
    """Removed numbers, added queries by number, and the version."""
    with catalog.changes(None if since is None else version_of(catalog, since)) as changes:
        added = [row for batch in changes.added for row in batch.to_pylist()]
        return list(changes.removed), {row["number"]: row["query"] for row in added}, changes.version.count


def test_a_subscription_is_stored_as_given(catalog: Catalog, catalog_url: str) -> None:
    wanted = asked("ü", "//p:a[b = 'é']", tenant="t", namespaces={"p": "urn:x"}, delivery_target='{"k": 1}')
    added = catalog.add(wanted)
    assert (added.revision, added.state) == (1, State.ACTIVE)
    assert added.created == added.changed
    with Catalog(catalog_url) as again:
        assert again.get("ü", tenant="t") == added
    for field in dataclasses.fields(wanted):
        if field.name != "state":
            assert getattr(added, field.name) == getattr(wanted, field.name)


def test_ids_are_generated_and_unique_in_a_tenant(catalog: Catalog) -> None:
    assert catalog.add(asked()).id != catalog.add(asked()).id
    first = catalog.add(asked("x"))
    assert catalog.add(asked("x")) == first
    assert catalog.add(asked("x", tenant="t")).number != first.number
    with pytest.raises(CatalogError, match="subscription x exists") as caught:
        catalog.add(asked("x", "//b"))
    assert caught.value.code == "subscription-exists"
    assert catalog.get("x") == first


def test_a_bad_query_is_refused_with_its_position(catalog: Catalog) -> None:
    with pytest.raises(tamis.QueryError) as caught:
        catalog.add(asked("x", "//a[b AND c]"))
    assert caught.value.column == 7
    catalog.add(asked("x"))
    with pytest.raises(tamis.QueryError):
        catalog.change("x", query="//p:a")
    assert catalog.version.count == 1


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (asked(""), "bad-value"),
        (asked("x\0"), "bad-value"),
        (asked("x", "//a[. = '\0']"), "bad-value"),
        (asked("x", delivery_target="\ud800"), "bad-value"),
        (asked("x" * 256), "name-limit"),
        (asked("x", namespaces="nowhere"), "unknown-prefix-map"),
    ],
)
def test_values_that_cannot_be_stored_are_refused(
    catalog: Catalog, wanted: NewSubscription, code: str
) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add(wanted)
    assert caught.value.code == code
    assert catalog.version.count == 0


def test_the_longest_names_fit(catalog: Catalog) -> None:
    longest = "\U0001f600" * 255
    catalog.add(NewSubscription(longest, "//a", longest, longest))
    assert catalog.remove(longest, tenant=longest)


def test_a_change_makes_a_revision_and_a_number(catalog: Catalog) -> None:
    first = catalog.add(asked("x"))
    second = catalog.change("x", query="//b")
    assert (second.revision, second.query, second.created) == (2, "//b", first.created)
    assert second.number > first.number
    assert catalog.change("x", query="//b") == second
    assert catalog.change("x", subscriber="al").revision == 3
    assert catalog.change("x", delivery_target="console", namespaces={"p": "u"}).revision == 4
    assert catalog.version.count == 4
    with pytest.raises(CatalogError, match="no subscription x of tenant t"):
        catalog.change("x", tenant="t", query="//b")


def test_pausing_is_a_removal_and_resuming_an_addition(catalog: Catalog) -> None:
    number = catalog.add(asked("x")).number
    assert followed(catalog, 0) == ([], {number: "//a"}, 1)
    paused = catalog.pause("x")
    assert (paused.state, paused.revision, paused.number) == (State.PAUSED, 1, number)
    assert catalog.pause("x") == paused
    assert followed(catalog, 1) == ([number], {}, 2)
    assert catalog.change("x", query="//b").state is State.PAUSED
    assert followed(catalog, 2) == ([], {}, 3)
    resumed = catalog.resume("x")
    assert followed(catalog, 3) == ([], {resumed.number: "//b"}, 4)
    assert followed(catalog, None) == followed(catalog, 3)


def test_an_id_that_is_added_again_continues_its_revisions(catalog: Catalog) -> None:
    catalog.add(asked("x"))
    before = catalog.change("x", query="//b")
    assert catalog.remove("x")
    assert not catalog.remove("x")
    again = catalog.add(asked("x"))
    assert again.revision == 3
    assert again.number > before.number
    catalog.remove("x")
    assert imported(catalog, {"id": "x", "subscriber": "bob", "query": "//a"})[0].added == 1
    assert catalog.get("x").revision == 4
    with pytest.raises(CatalogError) as caught:
        catalog.get("y")
    assert caught.value.code == "unknown-subscription"


def test_prefix_maps_are_shared_by_name(catalog: Catalog) -> None:
    catalog.put_prefixes(PrefixMap("news", {"p": "urn:1"}, "t"))
    with pytest.raises(CatalogError):
        catalog.add(asked("x", "//p:a", namespaces="news"))
    first = catalog.add(asked("x", "//p:a", namespaces="news", tenant="t"))
    paused = catalog.add(asked("y", "//p:a", namespaces="news", tenant="t", state=State.PAUSED))
    other = catalog.add(asked("z", tenant="t"))
    version = catalog.version
    catalog.put_prefixes(PrefixMap("news", {"p": "urn:1"}, "t"))
    assert catalog.version == version
    catalog.put_prefixes(PrefixMap("news", {"p": "urn:2", "q": "urn:3"}, "t"))
    second = catalog.get("x", tenant="t")
    assert (second.revision, second.namespaces) == (2, "news")
    assert catalog.get("y", tenant="t").revision == 2
    assert catalog.get("y", tenant="t").number != paused.number
    assert catalog.get("z", tenant="t") == other
    with catalog.changes(version) as changes:
        assert changes.removed == [first.number]
        [row] = [row for batch in changes.added for row in batch.to_pylist()]
    assert (row["number"], json.loads(row["prefixes"])) == (second.number, {"p": "urn:2", "q": "urn:3"})
    assert [one.prefixes for one in catalog.prefixes(tenant="t")] == [{"p": "urn:2", "q": "urn:3"}]
    assert catalog.prefixes(tenant="") == []


def test_a_prefix_map_stays_if_a_user_would_be_refused(catalog: Catalog) -> None:
    catalog.put_prefixes(PrefixMap("m", {"p": "urn:1"}))
    catalog.add(asked("x", "//p:a", namespaces="m"))
    version = catalog.version
    for refused in (
        lambda: catalog.put_prefixes(PrefixMap("m", {"q": "urn:1"})),
        lambda: catalog.remove_prefixes("m"),
    ):
        with pytest.raises(CatalogError, match="subscription x") as caught:
            refused()
        assert caught.value.code == "prefix-map-used"
    assert catalog.version == version
    assert imported(catalog, {"prefix_map": "m", "prefixes": {}})[1][0].code == "prefix-map-used"
    catalog.remove("x")
    assert catalog.remove_prefixes("m")
    assert not catalog.remove_prefixes("m")


def test_lists_are_filtered_and_paged(catalog: Catalog) -> None:
    for number in range(25):
        tenant, subscriber = "ab"[number % 2], "xyz"[number % 3]
        catalog.add(NewSubscription(subscriber, f"//Nr[@n = {number}]", f"s{number}", tenant))
    catalog.pause("s4", tenant="a")
    ids = [(one.tenant, one.id) for one in catalog.list()]
    assert ids == sorted(ids)
    assert len(ids) == 25
    paged: list[tuple[str, str]] = []
    while page := catalog.list(after=paged[-1] if paged else None, limit=4):
        paged += [(one.tenant, one.id) for one in page]
    assert paged == ids
    assert {one.id for one in catalog.list(tenant="b", subscriber="x")} == {"s3", "s9", "s15", "s21"}
    assert [one.id for one in catalog.list(state=State.PAUSED)] == ["s4"]
    assert [one.id for one in catalog.list(text="NR[@n = 24")] == ["s24"]
    assert catalog.list(text="%") == []


def test_an_import_sets_refused_lines_aside(catalog: Catalog) -> None:
    done, refusals = imported(
        catalog,
        {"id": "a", "subscriber": "bob", "query": "//a"},
        {"id": "b", "subscriber": "bob", "query": "//a[b AND c]"},
        "{nope}",
        "",
        {"subscriber": "bob"},
        {"subscriber": "bob", "query": "//a", "querry": "//b"},
        {"subscriber": "bob", "query": "//p:a", "namespaces": "m"},
        {"prefix_map": "m", "prefixes": {"p": "urn:1"}},
        {"subscriber": "bob", "query": "//p:a", "namespaces": "m"},
        {"subscriber": 7, "query": "//a"},
        {"subscriber": "bob", "query": "//a", "state": "asleep"},
        '{"subscriber": "bob", "query": "\\ud800"}',
        "[" * 100_000,
    )
    assert done.added == 3
    assert [(refusal.place, refusal.code, refusal.column) for refusal in refusals] == [
        (2, "syntax", 7),
        (3, "bad-json", 2),
        (5, "bad-line", None),
        (6, "bad-line", None),
        (7, "unknown-prefix-map", None),
        (10, "bad-line", None),
        (11, "bad-line", None),
        (12, "bad-value", None),
        (13, "bad-json", None),
    ]
    assert len(catalog.list()) == 2


def test_queries_that_can_never_match_have_warnings(catalog: Catalog) -> None:
    added = catalog.add(NewSubscription("bob", "//a[@d > 'x']", "never"))
    assert [warning.code for warning in added.warnings] == ["compares-numbers"]
    assert catalog.change("never", query="1 = 2").warnings[0].code == "never-matches"
    done, _ = imported(
        catalog,
        {"id": "fine", "subscriber": "bob", "query": "//a"},
        {"id": "x", "subscriber": "bob", "query": "//a or //b < 'x'"},
    )
    assert (done.added, done.warned) == (2, 1)
    assert [(one.place, one.code, one.column) for one in done.warnings] == [(2, "compares-numbers", 12)]


def test_importing_again_changes_nothing(catalog: Catalog) -> None:
    given: list[dict[str, object]] = [
        {"prefix_map": "m", "prefixes": {"p": "urn:1"}},
        {"id": "a", "subscriber": "bob", "query": "//p:a", "namespaces": "m"},
        {"id": "b", "tenant": "t", "subscriber": "bob", "query": "//b", "state": "paused"},
        {"subscriber": "bob", "query": "//c", "namespaces": {"p": "urn:2"}},
        {"subscriber": "bob", "query": "//c", "namespaces": {"p": "urn:2"}},
    ]
    assert imported(catalog, *given)[0] == Imported(added=4, unchanged=1)
    version, before = catalog.version, catalog.list()
    assert imported(catalog, *given)[0] == Imported(unchanged=5)
    assert (catalog.version, catalog.list()) == (version, before)
    # Without a state, it stays as it is.
    catalog.pause("a")
    assert imported(catalog, *given)[0] == Imported(unchanged=5)
    assert imported(catalog, given[1] | {"state": "active"}, given[2] | {"query": "//d"})[0].changed == 2
    assert catalog.get("a").revision == 1
    assert catalog.get("b", tenant="t").revision == 2


def test_the_last_of_several_lines_for_one_id_stays(catalog: Catalog) -> None:
    line = {"id": "a", "subscriber": "bob", "query": "//a"}
    catalog.add(asked("a"))
    imported(catalog, line | {"state": "paused"}, line | {"query": "//b", "state": "active"})
    assert followed(catalog, 1)[0] == [1]
    assert list(followed(catalog, 1)[1].values()) == ["//b"]
    assert imported(catalog, line, line | {"query": "//b"})[0].changed == 2
    assert catalog.get("a").revision == 2


def test_an_export_imports_as_the_same(catalog: Catalog, tmp_path: Path) -> None:
    catalog.put_prefixes(PrefixMap("m", {"p": "urn:1"}, "t"))
    catalog.add(asked("x", "//p:a", namespaces="m", tenant="t"))
    catalog.add(asked("é", '//p:a[. = "\u2028"]', namespaces={"p": "urn:2"}, state=State.PAUSED))
    exported = [lines.write(item) for item in catalog.export()]
    with Catalog(f"{tmp_path}/other.db") as other:
        assert imported(other, *exported)[0] == Imported(added=3)
        assert [lines.write(item) for item in other.export()] == exported
        assert [lines.write(item) for item in other.export(tenant="t")] == [exported[0], exported[2]]


def test_changes_of_a_compacted_log_start_from_an_empty_catalog(catalog: Catalog) -> None:
    for id in "abc":
        catalog.add(asked(id))
    third = catalog.version
    catalog.remove("a")
    catalog.remove("b")
    catalog.compact(4)
    assert followed(catalog, 4)[0] == [2]
    with catalog.changes(third) as changes:
        assert changes.since is None
    removed, added, version = followed(catalog, 3)
    assert (removed, list(added), version) == ([], [3], 5)
    assert catalog.version.count == 5
    # A version that there never was.
    catalog.compact(100)
    assert followed(catalog, 5) == ([], {}, 5)
    assert [version_of(catalog, count).mark != "" for count in range(7)] == [False] * 4 + [True] * 2 + [False]


def test_a_reader_sees_one_state(catalog: Catalog) -> None:
    catalog.add(asked("x"))
    with catalog.changes(None) as changes:
        catalog.add(asked("y"))
        catalog.remove("x")
        assert [row["id"] for batch in changes.added for row in batch.to_pylist()] == ["x"]
        assert changes.version.count == 1


def test_several_may_open_a_new_catalog_at_once(catalog_url: str) -> None:
    identities: set[str] = set()

    def open_it() -> None:
        with Catalog(catalog_url) as catalog, catalog.changes(None) as changes:
            identities.add(changes.catalog)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(identities) == 1


def test_a_newer_catalog_is_refused(catalog: Catalog, catalog_url: str) -> None:
    engine = sa.create_engine(catalog_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {database.VERSION_TABLE} SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(CatalogError, match="9999") as caught:
        Catalog(catalog_url)
    assert caught.value.code == "catalog-newer"


def test_the_schema_is_what_the_migrations_make(catalog: Catalog, catalog_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = sa.create_engine(catalog_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        options = {"version_table": database.VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert context.get_current_revision() == schema.NEWEST
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_two_writers_of_one_catalog_wait_for_each_other(catalog_url: str) -> None:
    def write(tenant: str) -> None:
        with Catalog(catalog_url) as catalog:
            for number in range(50):
                catalog.add(asked(f"s{number}", tenant=tenant))

    threads = [threading.Thread(target=write, args=(tenant,)) for tenant in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Catalog(catalog_url) as catalog:
        assert catalog.version.count == 100
        assert sorted(one.number for one in catalog.list()) == list(range(1, 101))


def test_a_locked_file_has_its_own_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db?timeout=0.1"
    with Catalog(url) as catalog:
        holder = sa.create_engine(url)
        with holder.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            with pytest.raises(CatalogError) as caught:
                catalog.add(asked("x"))
            assert caught.value.code == "catalog-locked"
            assert catalog.list() == []
        holder.dispose()
        catalog.add(asked("x"))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("mysql://x/y", "catalog-url"),
        ("sqlite://", "catalog-url"),
        ("://", "catalog-url"),
        ("{folder}/none/catalog.db", "catalog-unreachable"),
        ("{folder}/text", "not-a-catalog"),
        ("postgresql://secret:secret@127.0.0.1:{port}/x", "catalog-unreachable"),
    ],
)
def test_urls_that_cannot_be_opened(url: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("This is a text of some length, and no database at all. " * 10)
    with pytest.raises(CatalogError) as caught:
        Catalog(url.format(folder=tmp_path, port=free_port()))
    assert caught.value.code == code
    assert ":secret" not in str(caught.value)


def test_a_lost_connection_is_reopened(postgres: Postgres) -> None:
    with Catalog(postgres.new_database()) as catalog:
        catalog.add(asked("x"))
        postgres.stop()
        with pytest.raises(CatalogError) as caught:
            catalog.get("x")
        assert caught.value.code == "catalog-unreachable"
        postgres.start()
        assert catalog.get("x").id == "x"
        catalog.add(asked("y"))


def test_a_writer_that_is_cut_off_tries_again(postgres: Postgres) -> None:
    url = postgres.new_database()
    with Catalog(url) as catalog, Catalog(url) as other:
        catalog.add(asked("x"))
        engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        cut = sa.text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        work = catalog._database.write
        attempts = 0

        def cut_off(writing: database.WriteTransaction) -> int:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                with engine.connect() as connection:
                    connection.execute(cut)
            return int(writing.connection.execute(sa.text("SELECT 7")).scalar_one())

        assert work(cut_off) == 7
        assert attempts == 2
        engine.dispose()
        assert other.get("x").id == "x"


def test_a_killed_import_is_there_by_whole_batches(catalog_url: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    count = 40_000
    with path.open("w") as file:
        for number in range(count):
            line = {"id": f"s{number:06}", "subscriber": "bob", "query": f"//a[@n = {number}]"}
            file.write(json.dumps(line) + "\n")
    command = [
        sys.executable,
        "-m",
        "tamis.cli",
        "subscriptions",
        "import",
        str(path),
        "--catalog",
        catalog_url,
    ]
    with Catalog(catalog_url) as catalog:
        process = subprocess.Popen(command)
        while catalog.version.count < 2:
            assert process.poll() is None
        process.kill()
        process.wait()
        with catalog.changes(None) as changes:
            there = sum(batch.num_rows for batch in changes.added)
            assert there == changes.version.count * 10_000
        assert 0 < there < count
        with path.open("rb") as file:
            done = catalog.import_(lines.read(file), unexpected)
        assert done == Imported(added=count - there, unchanged=there)
