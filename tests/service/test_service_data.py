"""`/v1/data`: uploads, versions, records, and queries that are tried with data."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.client import AsyncClient, Client, ClientError
from tamis.generations.data_updater import DataUpdater
from tamis.generations.store import Store
from tamis.model.data_set import NewDataSet
from tamis.model.token import Role
from tests.helpers.served import Served, serving, settings_in

CSV = b"symbol,name\nIBM,Big Blue\nSAP,Soft\n"
QUERY = "for $t in //trade return <deal>{ collection('companies')/row[symbol = $t/@symbol]/name }</deal>"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(settings_in(tmp_path_factory.mktemp("data"), body=1000, data_body=100_000)) as served:
        yield served


@pytest.fixture
def admin(served: Served) -> Iterator[Client]:
    with Client(served.url, served.secret(Role.ADMIN)) as client:
        yield client


def refused(client: Client, name: str, content: bytes, **more: str) -> ClientError:
    with pytest.raises(ClientError) as caught:
        client.put_data(name, content, **{"media_type": "text/csv", **more})
    return caught.value


def test_the_life_of_a_data_set(served: Served, admin: Client) -> None:
    put = admin.put_data("companies", CSV, media_type="text/csv", key="/row/symbol")
    assert (put["key"], put["current"]["number"], put["current"]["records"]) == ("/row/symbol", 1, 2)
    assert put["current"]["source"] == "companies.csv"
    assert admin.records("companies", start=1) == ["<row><symbol>SAP</symbol><name>Soft</name></row>"]
    more = b"<all><row><symbol>HPQ</symbol><name>H</name></row></all>"
    changed = admin.change_data("companies", more, record="row", delete=["IBM"])
    assert (changed["current"]["number"], changed["current"]["records"]) == (2, 2)
    assert admin.change_data("companies", delete=["HPQ"])["current"]["records"] == 1
    assert admin.revert_data("companies", 2)["current"]["number"] == 2
    assert [one["number"] for one in admin.data_set("companies")["versions"]] == [3, 2, 1]
    assert admin.put_data("companies", CSV, media_type="text/csv")["current"]["number"] == 4
    admin.subscribe(QUERY, id="x", subscriber="ann")
    assert admin.data_set("companies")["subscriptions"] == ["x"]
    assert [one["users"] for one in admin.data_sets()] == [1]
    with pytest.raises(ClientError, match="data-in-use") as caught:
        admin.remove_data("companies")
    assert caught.value.status == 409
    admin.unsubscribe("x")
    admin.remove_data("companies")
    admin.remove_data("companies")
    assert admin.data_sets() == []
    assert not list((served.settings.state / "uploads").iterdir())


def test_queries_are_tried_with_data(served: Served, admin: Client) -> None:
    asked = {"query": QUERY}
    unknown = served.client().post("/v1/check", json=asked).json()
    assert unknown["error"]["code"] == "unknown-data"
    admin.put_data("companies", CSV, media_type="text/csv")
    assert served.client().post("/v1/check", json=asked).json()["error"] is None
    found = served.client().post("/v1/match", json={"xml": "<trade symbol='IBM'/>", "query": QUERY}).json()
    assert found["query"]["output"] == "<deal><name>Big Blue</name></deal>"
    other = served.client(tenant="other")
    assert other.post("/v1/check", json=asked).json() == unknown
    asked = {"xml": "<trade/>", "query": QUERY}
    assert other.post("/v1/match", json=asked).json()["error"]["code"] == "unknown-data"
    admin.remove_data("companies")


def test_what_is_refused_leaves_the_current_version(served: Served, admin: Client) -> None:
    admin.put_data("companies", CSV, media_type="text/csv", key="/row/symbol")
    for content, code, said in (
        (b"symbol,name\nIBM\n", "bad-csv", "companies.csv: row 1 has 1 fields"),
        (b"symbol,a b\nIBM,x\n", "bad-column", "'a b'"),
        (b"symbol,name\nA,x\nA,y\n", "duplicate-key", "records 1 and 2"),
    ):
        error = refused(admin, "companies", content)
        assert (error.status, error.code) == (422, code)
        assert said in error.reason
        assert str(served.settings.state) not in error.reason
    assert refused(admin, "companies", b"").code == "bad-request"
    assert refused(admin, "companies", b"x", media_type="text/plain").status == 415
    assert refused(admin, "companies", b"x" * 100_001).code == "body-limit"
    assert refused(admin, "none", b"<a>", media_type="application/xml").status == 422
    assert [(one["name"], one["current"]["number"]) for one in admin.data_sets()] == [("companies", 1)]
    with pytest.raises(ClientError, match="unknown-version"):
        admin.revert_data("companies", 7)
    # The limit of other requests is not that of uploads.
    assert len(CSV * 50) > 1000
    long = b"symbol,name\n" + b"".join(b"S%d,long name\n" % number for number in range(200))
    assert admin.put_data("companies", long, media_type="text/csv")["current"]["records"] == 200
    admin.remove_data("companies")


def test_subscribers_use_data_and_admins_change_it(served: Served, admin: Client) -> None:
    admin.put_data("companies", CSV, media_type="text/csv")
    with Client(served.url, served.secret(Role.SUBSCRIBER, subscriber="ann")) as ann:
        assert [one["name"] for one in ann.data_sets()] == ["companies"]
        assert len(ann.records("companies")) == 2
        for change in (
            lambda: ann.put_data("companies", CSV),
            lambda: ann.change_data("companies", delete=["x"]),
            lambda: ann.revert_data("companies"),
            lambda: ann.remove_data("companies"),
        ):
            with pytest.raises(ClientError) as caught:
                change()
            assert caught.value.code == "forbidden"
    admin.remove_data("companies")


def test_shared_data_is_changed_by_the_operator_only(served: Served, admin: Client, tmp_path: Path) -> None:
    served.catalog.data.create(NewDataSet("rates", shared=True))
    updater = DataUpdater(served.catalog.data, Store(served.settings.generations), tmp_path)
    updater.replace("rates", [b"<row><n>1</n></row>"])
    for tenant in ("", "other"):
        with Client(served.url, served.secret(Role.ADMIN, tenant)) as client:
            assert [one["shared"] for one in client.data_sets()] == [True]
            assert client.records("rates") == ["<row><n>1</n></row>"]
            assert refused(client, "rates", CSV).code == "forbidden"
            with pytest.raises(ClientError, match="forbidden"):
                client.remove_data("rates")
    served.catalog.data.remove("rates")


def test_the_asynchronous_client_has_the_same_verbs(served: Served) -> None:
    async def use() -> None:
        async with AsyncClient(served.url, served.secret(Role.ADMIN)) as client:
            await client.put_data("companies", CSV, media_type="text/csv", key="/row/symbol")
            await client.change_data("companies", delete=["IBM"])
            assert len(await client.records("companies")) == 1
            assert (await client.revert_data("companies"))["current"]["number"] == 1
            assert [one["name"] for one in await client.data_sets()] == ["companies"]
            assert (await client.data_set("companies"))["users"] == 0
            await client.remove_data("companies")

    asyncio.run(use())
