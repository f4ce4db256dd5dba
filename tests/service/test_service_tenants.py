"""Tenants are isolated: every operation is tried on the resources of another tenant."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tamis.generations.data_updater import DataUpdater
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.data_set import NewDataSet
from tamis.model.signatures import new_secret
from tamis.model.subscription import NewSubscription, PrefixMap
from tamis.model.token import Role
from tamis.model.webhook import NewWebhook
from tamis.service.app import application
from tamis.service.service import Service
from tamis.sinks.dead_letters import DeadLetters, LetterFilter
from tamis.sinks.replay import Replays
from tests.helpers.delivery_rows import delivery
from tests.helpers.served import Served, serving, settings_in
from tests.helpers.waiting import until
from tests.service.test_service_deliveries import publish
from tests.service.test_service_letters import letter, write_letters

MARK = "marked"
"""Is in all that the other tenant has, and in nothing that is asked for."""

SOURCES = """
[[source]]
name = "inbox"
path = "inbox"
tenant = "one"

[[source]]
name = "others"
path = "others"
tenant = "other"
"""


@dataclass(frozen=True)
class Asked:
    """A request for what is another tenant's, by the ids that it has there."""

    path: str = ""
    """If it has parameters in it."""
    params: dict[str, Any] | None = None
    json: Any = None
    content: bytes | None = None
    status: int = 200
    """Lists are empty, and what is named is not there."""


OPERATIONS: dict[tuple[str, str], Asked] = {
    ("GET", "/health"): Asked(),
    ("GET", "/ready"): Asked(),
    ("GET", "/metrics"): Asked(status=403),
    ("GET", "/v1/network"): Asked(status=403),
    ("POST", "/v1/subscriptions"): Asked(
        json={"id": "s1", "query": "//mine", "subscriber": "ann"}, status=201
    ),
    ("GET", "/v1/subscriptions"): Asked(params={"subscriber": "bob"}),
    ("GET", "/v1/subscriptions/{id}"): Asked("/v1/subscriptions/s2", status=404),
    ("PATCH", "/v1/subscriptions/{id}"): Asked("/v1/subscriptions/s2", json={"query": "//x"}, status=404),
    ("DELETE", "/v1/subscriptions/{id}"): Asked("/v1/subscriptions/s2", status=404),
    ("POST", "/v1/subscriptions.jsonl"): Asked(
        content=b'{"id": "s2", "tenant": "other", "subscriber": "bob", "query": "//x"}'
    ),
    ("GET", "/v1/subscriptions.jsonl"): Asked(),
    ("POST", "/v1/webhooks"): Asked(json={"name": "hook", "url": "https://example.org/"}, status=201),
    ("GET", "/v1/webhooks"): Asked(),
    ("GET", "/v1/webhooks/{name}"): Asked("/v1/webhooks/theirs", status=404),
    ("PATCH", "/v1/webhooks/{name}"): Asked(
        "/v1/webhooks/theirs", json={"url": "https://example.org/", "state": "disabled"}, status=404
    ),
    ("DELETE", "/v1/webhooks/{name}"): Asked("/v1/webhooks/theirs", status=404),
    ("POST", "/v1/webhooks/{name}/rotate"): Asked("/v1/webhooks/theirs/rotate", json={}, status=404),
    ("POST", "/v1/webhooks/{name}/test"): Asked("/v1/webhooks/theirs/test", status=404),
    ("GET", "/v1/data"): Asked(),
    ("GET", "/v1/data/{name}"): Asked("/v1/data/theirs", status=404),
    ("GET", "/v1/data/{name}/records"): Asked("/v1/data/theirs/records", status=404),
    ("PUT", "/v1/data/{name}"): Asked("/v1/data/theirs", content=b"<mine/>"),
    ("POST", "/v1/data/{name}/changes"): Asked("/v1/data/marks/changes", params={"delete": "x"}, status=404),
    ("POST", "/v1/data/{name}/revert"): Asked("/v1/data/marks/revert", status=404),
    ("DELETE", "/v1/data/{name}"): Asked("/v1/data/marks", status=404),
    ("POST", "/v1/messages"): Asked(params={"source": "others"}, json={"xml": "<a/>"}, status=422),
    ("POST", "/v1/match"): Asked(json={"xml": "<a/>", "explain": True}),
    ("POST", "/v1/check"): Asked(json={"query": "//p:a", "namespaces": "shared"}, status=422),
    ("GET", "/v1/deliveries"): Asked(params={"subscriber": "bob"}),
    ("GET", "/v1/deliveries/events"): Asked(params={"subscriber": "bob"}),
    ("POST", "/v1/deliveries/ack"): Asked(json={"subscriber": "bob", "ids": ["d1"], "until": 1 << 40}),
    ("GET", "/v1/dead-letters"): Asked(params={"source": "others"}),
    ("GET", "/v1/dead-letters/{letter}"): Asked("/v1/dead-letters/m1", status=404),
    ("POST", "/v1/dead-letters/replay"): Asked(json={"letters": ["m1"], "source": "others"}, status=404),
    ("GET", "/v1/token"): Asked(),
    ("GET", "/v1/status"): Asked(),
    ("GET", "/v1/sources"): Asked(),
    ("GET", "/v1/sinks"): Asked(),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service where one tenant has something of everything."""
    folder = tmp_path_factory.mktemp("tenants")
    with serving(settings_in(folder, SOURCES)) as served:
        served.catalog.put_prefixes(PrefixMap("shared", {"p": MARK}, tenant="other"))
        for id in ("s1", "s2"):
            query = f"/a[not({MARK})]"
            served.catalog.add(NewSubscription("bob", query, id=id, tenant="other", delivery_target=MARK))
        for name in ("hook", "theirs"):
            url = f"https://example.org/{MARK}"
            served.catalog.webhooks.create(NewWebhook(name, url, new_secret(), "other", "bob"))
        store = Store(served.settings.generations)
        updater = DataUpdater(served.catalog.data, store, folder / "build")
        for name in ("theirs", "marks"):
            served.catalog.data.create(NewDataSet(name, "other", source=MARK))
            updater.replace(name, [f"<{MARK}/>".encode()], tenant="other", source=MARK)
        publish(folder, 0, [delivery(1, "bob", "other", f"<{MARK}/>".encode())])
        write_letters(folder, 0, [letter("m1", "other", "others", reason=MARK, raw=MARK.encode())])
        with Publisher(served.catalog, store, served.settings.generations) as publisher:
            publisher.refresh()
        until(lambda: served.catalog.mailbox.count("other"), "the delivery")
        yield served


def belongings(served: Served) -> tuple[Any, ...]:
    """All that the other tenant has."""
    folder = Path(served.settings.dead_letters).parent
    letters = DeadLetters(served.settings.dead_letters)
    return (
        list(served.catalog.export(tenant="other")),
        served.catalog.mailbox.pending("other", "bob"),
        served.catalog.webhooks.list("other"),
        served.catalog.data.list(tenant="other"),
        list(letters.letters(LetterFilter(tenant="other"))),
        Replays(letters).marks(),
        sorted(path.name for path in (folder / "others").iterdir()),
    )


def test_every_operation_is_tried(served: Served) -> None:
    described = application(Service(served.settings, served.catalog)).openapi()
    operations = {
        (method.upper(), path) for path, methods in described["paths"].items() for method in methods
    }
    assert operations == OPERATIONS.keys()


def test_the_owner_sees_what_is_marked(served: Served) -> None:
    """Or the test below would tell nothing."""
    owner = served.client(tenant="other")
    for path, params in (
        ("/v1/subscriptions", {}),
        ("/v1/subscriptions/s2", {}),
        ("/v1/subscriptions.jsonl", {}),
        ("/v1/webhooks", {}),
        ("/v1/webhooks/theirs", {}),
        ("/v1/data", {}),
        ("/v1/data/theirs", {}),
        ("/v1/data/theirs/records", {}),
        ("/v1/deliveries", {"subscriber": "bob"}),
        ("/v1/dead-letters", {}),
        ("/v1/dead-letters/m1", {}),
    ):
        assert MARK in owner.get(path, params=params).text, path
    assert MARK in owner.post("/v1/match", json={"xml": "<a/>"}).text
    assert MARK in owner.post("/v1/check", json={"query": "//p:a", "namespaces": "shared"}).text


@pytest.mark.parametrize("tenant", ["", "one"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_resources_of_another_tenant_are_unknown(served: Served, tenant: str, method: str, path: str) -> None:
    asked = OPERATIONS[method, path]
    before = belongings(served)
    client = served.client(Role.ADMIN, tenant)
    request = client.build_request(
        method, asked.path or path, params=asked.params, json=asked.json, content=asked.content
    )
    answer = client.send(request, stream=True)
    try:
        # A stream has no end: what it begins with has to do.
        text = next(answer.iter_lines()) if path.endswith("events") else answer.read().decode()
    finally:
        answer.close()
    operates = tenant == "" and path in ("/metrics", "/v1/network")
    assert answer.status_code == (200 if operates else asked.status), text
    assert MARK not in text
    if path in ("/v1/status", "/v1/sources"):
        # Who looks after the broker sees that there are others, and nothing of what they have.
        assert ("others" in text) == (tenant == "")
    assert belongings(served) == before
