"""Random changes of a catalog against a model, and followers that must reach the same state."""

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tamis.catalog import Catalog
from tamis.errors import CatalogError
from tamis.model import subscription_lines as lines
from tamis.model.subscription import NewSubscription, PrefixMap, State
from tamis.model.version import Version

IDS = [f"s{number}" for number in range(12)]
QUERIES = ["//a", "//b[@x = 1]", "/a/b/c", "not(//d)"]
SEEDS = range(4)
STEPS = 60


@dataclass
class Wanted:
    """A subscription as the model has it."""

    query: str
    revision: int
    active: bool
    shared: bool = False


@dataclass
class Model:
    """The expected subscriptions of a tenant, and random steps that change both them and the catalog."""

    catalog: Catalog
    tenant: str
    random: random.Random
    present: dict[str, Wanted] = field(default_factory=dict)
    retired: dict[str, int] = field(default_factory=dict)
    prefixes: int = 0

    def __post_init__(self) -> None:
        self.catalog.put_prefixes(PrefixMap("m", {"p": "urn:0"}, self.tenant))

    def step(self) -> None:
        names = ("add", "change", "remove", "pause", "resume", "import_", "map")
        getattr(self, self.random.choice(names))()

    def put(self, id: str, query: str, *, shared: bool = False) -> None:
        present = self.present.get(id)
        if present is None:
            self.present[id] = Wanted(query, self.retired.pop(id, 0) + 1, True, shared)
        elif (present.query, present.shared) != (query, shared):
            self.present[id] = Wanted(query, present.revision + 1, present.active, shared)

    def add(self) -> None:
        id, query, shared = self.random.choice(IDS), self.random.choice(QUERIES), self.random.random() < 0.3
        asked = NewSubscription("bob", query, id, self.tenant, "m" if shared else {})
        present = self.present.get(id)
        if present is not None and (present.query, present.shared) != (query, shared):
            with pytest.raises(CatalogError, match="another"):
                self.catalog.add(asked)
        else:
            assert self.catalog.add(asked).id == id
            self.put(id, query, shared=shared)

    def change(self) -> None:
        id, query = self.random.choice(IDS), self.random.choice(QUERIES)
        if id not in self.present:
            with pytest.raises(CatalogError, match="no subscription"):
                self.catalog.change(id, tenant=self.tenant, query=query)
        else:
            self.catalog.change(id, tenant=self.tenant, query=query)
            self.put(id, query, shared=self.present[id].shared)

    def remove(self) -> None:
        id = self.random.choice(IDS)
        gone = self.present.pop(id, None)
        assert self.catalog.remove(id, tenant=self.tenant) == (gone is not None)
        if gone is not None:
            self.retired[id] = gone.revision

    def pause(self) -> None:
        self.move(self.catalog.pause, active=False)

    def resume(self) -> None:
        self.move(self.catalog.resume, active=True)

    def move(self, verb: object, *, active: bool) -> None:
        assert callable(verb)
        if self.present:
            id = self.random.choice(sorted(self.present))
            verb(id, tenant=self.tenant)
            self.present[id].active = active

    def import_(self) -> None:
        given: list[str] = []
        final: dict[str, tuple[str, bool]] = {}
        for _ in range(self.random.randrange(1, 8)):
            id, query = self.random.choice(IDS), self.random.choice([*QUERIES, "//a[", "//q:a"])
            line: dict[str, str] = {"id": id, "tenant": self.tenant, "subscriber": "bob", "query": query}
            state = self.random.choice([None, *State])
            given.append(json.dumps(line | ({} if state is None else {"state": state})))
            if query in QUERIES:
                before = final[id][1] if id in final else id not in self.present or self.present[id].active
                final[id] = (query, before if state is None else state is State.ACTIVE)
        # A batch counts once, however often it names an id.
        for id, (query, active) in final.items():
            self.put(id, query)
            self.present[id].active = active
        self.catalog.import_(lines.read(given), lambda refusal: None)

    def map(self) -> None:
        self.prefixes += 1
        self.catalog.put_prefixes(PrefixMap("m", {"p": f"urn:{self.prefixes}"}, self.tenant))
        for one in self.present.values():
            one.revision += one.shared

    def prefixes_of(self, one: Wanted) -> str:
        return f'{{"p":"urn:{self.prefixes}"}}' if one.shared else "{}"

    def check(self) -> None:
        """The catalog holds what the model does."""
        found = {one.id: one for one in self.catalog.list(tenant=self.tenant)}
        assert {id: (one.query, one.revision, one.active) for id, one in self.present.items()} == {
            id: (one.query, one.revision, one.state is State.ACTIVE) for id, one in found.items()
        }


@dataclass
class Follower:
    """Applies the changes of a catalog to its own copy."""

    catalog: Catalog
    since: Version | None = None
    active: dict[int, tuple[str, str, int, str, str]] = field(default_factory=dict)

    def follow(self) -> None:
        with self.catalog.changes(self.since) as changes:
            if changes.since is None:
                self.active.clear()
            for number in changes.removed:
                self.active.pop(number, None)
            for row in (row for batch in changes.added for row in batch.to_pylist()):
                fields = ("tenant", "id", "revision", "query", "prefixes")
                self.active[row["number"]] = tuple(row[name] for name in fields)
            self.since = changes.version

    def check(self, *models: Model) -> None:
        """All active ones, each once, with the prefixes that hold now."""
        expected = {
            (model.tenant, id, one.revision, one.query, model.prefixes_of(one))
            for model in models
            for id, one in model.present.items()
            if one.active
        }
        assert set(self.active.values()) == expected
        assert len(self.active) == len(expected)


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


@pytest.mark.parametrize("seed", SEEDS)
def test_random_changes_are_followed_step_by_step(catalog: Catalog, seed: int) -> None:
    model = Model(catalog, "t", random.Random(seed))
    follower, late = Follower(catalog), Follower(catalog)
    for step in range(STEPS):
        version = catalog.version.count
        model.step()
        assert catalog.version.count in (version, version + 1)
        model.check()
        follower.follow()
        follower.check(model)
        if step % 7 == 0:
            late.follow()
            late.check(model)
        if step % 20 == 19:
            # The late one then starts from nothing.
            catalog.compact(catalog.version.count)


def test_two_writers_are_followed_as_they_write(catalog: Catalog, catalog_url: str) -> None:
    failed: list[BaseException] = []
    with Catalog(catalog_url) as one, Catalog(catalog_url) as other:
        models = [Model(one, "a", random.Random(1)), Model(other, "b", random.Random(2))]

        def write(model: Model) -> None:
            try:
                for _ in range(STEPS):
                    model.step()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(model,)) for model in models]
        for thread in threads:
            thread.start()
        follower = Follower(catalog)
        while any(thread.is_alive() for thread in threads):
            follower.follow()
            # Who starts at the same version from nothing sees the same: no change commits late.
            afresh = Follower(catalog)
            afresh.follow()
            if afresh.since == follower.since:
                assert afresh.active == follower.active
        for thread in threads:
            thread.join()
        assert failed == []
        follower.follow()
        follower.check(*models)
        for model in models:
            model.check()
