"""The clients, sync and async, against a service."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.client import AsyncClient, Client, ClientError, calls
from tamis.model.token import NewToken, Role
from tests.helpers.delivery_rows import delivery
from tests.helpers.served import Served, serving, settings_in
from tests.helpers.servers import free_port
from tests.helpers.waiting import until
from tests.service.test_service_deliveries import publish


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url, served.secret(Role.ADMIN)) as client:
        yield client


def test_subscriptions(client: Client) -> None:
    made = client.subscribe("//p:a", subscriber="ann", namespaces={"p": "urn:x"})
    assert client.subscription(made["id"]) == made
    assert client.pause(made["id"])["state"] == "paused"
    assert client.resume(made["id"])["state"] == "active"
    assert client.change(made["id"], query="//p:b")["revision"] == 2
    lines = [json.dumps({"id": f"s{n:03}", "subscriber": "bob", "query": "//a"}) for n in range(250)]
    assert client.import_subscriptions(lines)["added"] == 250
    assert sum(1 for _ in client.subscriptions(subscriber="bob")) == 250
    assert len(client.export_subscriptions()) == 251
    client.unsubscribe(made["id"])
    client.unsubscribe(made["id"])
    with pytest.raises(ClientError) as caught:
        client.subscription(made["id"])
    assert (caught.value.status, caught.value.code) == (404, "unknown-subscription")
    with pytest.raises(ClientError) as caught:
        client.subscribe("//a[", subscriber="ann")
    assert caught.value.detail["position"]["column"] == 5


def test_messages_and_looking_after_it(client: Client, tmp_path: Path) -> None:
    assert client.publish("<a/>", id="m1") == "m1"
    assert client.publish("<a/>", id="m1") == "m1"
    assert len(client.publish_many([(None, b"<b/>"), ("m2", "<c/>")])) == 2
    assert len(list((tmp_path / "inbox").iterdir())) == 2
    assert client.match("<a/>", query="/a", explain=True)["query"]["matches"]
    assert client.status()["job"] is None
    assert client.dead_letters() == []
    with pytest.raises(ClientError, match="no-letter"):
        client.dead_letter("none")
    with pytest.raises(ClientError, match="no-letter"):
        client.replay(["none"])


def test_deliveries_and_events(served: Served, client: Client, tmp_path: Path) -> None:
    publish(tmp_path, 0, [delivery(1, payload=b"\xff\xfe<\0"), delivery(2)])
    until(lambda: len(client.deliveries(subscriber="bob")) == 2, "the deliveries")
    events = client.events(subscriber="bob")
    first, second = next(events), next(events)
    assert (first.id, first.payload) == ("d1", b"\xff\xfe<\0")
    assert client.acknowledge([first.id], subscriber="bob") == 1
    assert client.acknowledge(until=second.cursor, subscriber="bob") == 1
    publish(tmp_path, 1, [delivery(3)])
    assert next(events).id == "d3"
    with pytest.raises(ClientError, match="bad-request"):
        next(client.events())


def test_events_go_on_after_a_break(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with Catalog(settings.catalog) as catalog:
        _, secret = catalog.tokens.create(NewToken("test", Role.SUBSCRIBER, subscriber="bob"))
    with Client(f"http://127.0.0.1:{settings.serve.port}", secret) as client:
        events = client.events()
        for number in range(2):
            publish(tmp_path, number, [delivery(number)])
            # Each time another service, on the same port.
            with serving(settings):
                assert next(events).id == f"d{number}"


def test_a_service_that_is_away_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with Client(f"http://127.0.0.1:{port}", "x") as client:
        monkeypatch.setattr(calls, "RETRY_SECONDS", 0.5)
        with pytest.raises(ClientError, match="unreachable"):
            client.status()
        monkeypatch.setattr(calls, "RETRY_SECONDS", 60.0)
        answers: list[str] = []

        def ask() -> None:
            try:
                client.status()
            except ClientError as error:
                answers.append(error.code)

        asking = threading.Thread(target=ask)
        asking.start()
        with serving(settings_in(tmp_path, port=port)):
            asking.join()
    assert answers == ["bad-token"]


def test_the_same_verbs_for_asyncio(served: Served, tmp_path: Path) -> None:
    async def use() -> None:
        async with AsyncClient(served.url, served.secret(Role.ADMIN)) as client:
            made = await client.subscribe("//a", subscriber="bob")
            assert [one["id"] async for one in client.subscriptions()] == [made["id"]]
            assert await client.publish("<a/>", id="m1") == "m1"
            assert (await client.match("<a/>", query="/a"))["query"]["matches"]
            publish(tmp_path, 0, [delivery(1)])
            async for one in client.events(subscriber="bob"):
                assert await client.acknowledge([one.id], subscriber="bob") == 1
                break
            assert await client.deliveries(subscriber="bob") == []
            await client.unsubscribe(made["id"])

    asyncio.run(use())


def test_both_clients_have_the_same_verbs() -> None:
    def verbs(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert verbs(Client) == verbs(AsyncClient)
