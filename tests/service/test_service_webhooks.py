"""`/v1/webhooks`: create, show, change, test and remove; only the own ones."""

import asyncio
import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.client import AsyncClient, Client, ClientError, verify
from tamis.model.signatures import new_secret
from tamis.model.token import Role
from tests.helpers.receiver import Reply, receiving
from tests.helpers.served import SOURCES, Served, serving, settings_in

URL = "https://example.org/hook"
ALLOW = '\n[webhooks]\nallow = ["127.0.0.1/32", "::1/128"]\n'


@pytest.fixture
def served(tmp_path: Path, catalog_url: str) -> Iterator[Served]:
    with serving(settings_in(tmp_path, SOURCES + ALLOW, catalog_url)) as served:
        yield served


def test_a_webhook_is_made_changed_and_removed(served: Served) -> None:
    admin = served.client()
    made = admin.post("/v1/webhooks", json={"name": "a.b-c_1", "url": URL})
    assert made.status_code == 201
    shown = made.json()
    assert shown.pop("secret").startswith("whsec_")
    assert shown.items() >= {"name": "a.b-c_1", "url": URL, "state": "active", "waiting": 0}.items()
    assert admin.get("/v1/webhooks/a.b-c_1").json() == shown
    assert admin.get("/v1/webhooks").json() == {"webhooks": [shown]}
    changed = admin.patch("/v1/webhooks/a.b-c_1", json={"url": URL + "2", "state": "disabled"}).json()
    assert (changed["url"], changed["state"]) == (URL + "2", "disabled")
    assert "by hand" in changed["reason"]
    again = admin.patch("/v1/webhooks/a.b-c_1", json={"state": "active"}).json()
    assert (again["url"], again["state"], again["reason"]) == (URL + "2", "active", None)
    assert admin.delete("/v1/webhooks/a.b-c_1").status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", ""), ("POST", "/rotate"), ("POST", "/test")):
        asked: dict[str, str] | None = {} if method == "PATCH" else None
        answer = admin.request(method, f"/v1/webhooks/a.b-c_1{path}", json=asked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown-webhook")


def test_requests_with_a_secret_are_idempotent(served: Served) -> None:
    admin = served.client()
    first, second = new_secret(), new_secret()
    asked = {"name": "hook", "url": URL, "secret": first}
    made = [admin.post("/v1/webhooks", json=asked) for _ in range(2)]
    assert [one.status_code for one in made] == [201, 201]
    assert made[0].json() == made[1].json()
    for other in ({"url": URL + "2"}, {"secret": second}, {"subscriber": "ann"}):
        refused = admin.post("/v1/webhooks", json=asked | other)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "webhook-exists")
    rotated = [admin.post("/v1/webhooks/hook/rotate", json={"secret": second}).json() for _ in range(2)]
    assert rotated[0] == rotated[1]
    assert rotated[0]["secret"] == second
    assert served.catalog.webhooks.get("", "hook").previous == first
    # It is not in what is printed, as in a log.
    assert first not in repr(served.catalog.webhooks.get("", "hook"))
    assert second not in repr(served.catalog.webhooks.get("", "hook"))


@pytest.mark.parametrize(
    "asked",
    [
        {"name": "hook", "url": "https://127.0.0.2/"},
        {"name": "hook", "url": "http://1.1.1.1/"},
        {"name": "hook", "url": "ftp://example.org/"},
        {"name": "a/b", "url": URL},
        {"name": "..", "url": URL},
        {"name": "", "url": URL},
        {"name": "hook", "url": URL, "secret": "whsec_c2hvcnQ="},
        {"name": "hook", "url": URL, "secrets": []},
    ],
)
def test_what_cannot_be(served: Served, asked: dict[str, object]) -> None:
    assert served.client().post("/v1/webhooks", json=asked).status_code == 422
    assert served.client().get("/v1/webhooks").json() == {"webhooks": []}


def test_a_subscriber_has_only_its_own(served: Served) -> None:
    admin, ann = served.client(), served.client(Role.SUBSCRIBER)
    for name, subscriber in (("shared", None), ("bobs", "bob"), ("anns", "ann")):
        admin.post("/v1/webhooks", json={"name": name, "url": URL, "subscriber": subscriber})
    assert ann.post("/v1/webhooks", json={"name": "own", "url": URL}).json()["subscriber"] == "ann"
    assert ann.post("/v1/webhooks", json={"name": "x", "url": URL, "subscriber": "bob"}).status_code == 403
    assert [one["name"] for one in ann.get("/v1/webhooks").json()["webhooks"]] == ["anns", "own"]
    assert len(admin.get("/v1/webhooks").json()["webhooks"]) == 4
    for name in ("shared", "bobs"):
        assert ann.get(f"/v1/webhooks/{name}").status_code == 404
        assert ann.patch(f"/v1/webhooks/{name}", json={"url": URL}).status_code == 404
        assert ann.post(f"/v1/webhooks/{name}/rotate", json={}).status_code == 404
        assert ann.post(f"/v1/webhooks/{name}/test").status_code == 404
        assert ann.delete(f"/v1/webhooks/{name}").status_code == 404
        subscribed = ann.post(
            "/v1/subscriptions", json={"query": "//a", "delivery_target": f"webhook:{name}"}
        )
        assert (subscribed.status_code, subscribed.json()["error"]["code"]) == (422, "no-webhook")
    assert ann.delete("/v1/webhooks/own").status_code == 204
    publisher = served.client(Role.PUBLISHER)
    assert publisher.get("/v1/webhooks").status_code == 403


def test_subscriptions_name_webhooks_that_are_there(served: Served) -> None:
    admin = served.client()
    asked = {"id": "s", "query": "//a", "subscriber": "ann", "delivery_target": "webhook:hook"}
    assert admin.post("/v1/subscriptions", json=asked).status_code == 422
    admin.post("/v1/webhooks", json={"name": "hook", "url": URL})
    assert admin.post("/v1/subscriptions", json=asked).status_code == 201
    assert admin.patch("/v1/subscriptions/s", json={"delivery_target": "webhook:none"}).status_code == 422
    lines = [asked | {"id": "t"}, asked | {"id": "u", "delivery_target": "webhook:none"}]
    done = admin.post("/v1/subscriptions.jsonl", content="\n".join(map(json.dumps, lines))).json()
    assert (done["added"], [one["code"] for one in done["refusals"]]) == (1, ["no-webhook"])
    used = admin.delete("/v1/webhooks/hook")
    assert (used.status_code, used.json()["error"]["code"]) == (409, "webhook-used")
    for id in ("s", "t"):
        admin.patch(f"/v1/subscriptions/{id}", json={"delivery_target": "outbox"})
    assert admin.delete("/v1/webhooks/hook").status_code == 204


def test_a_test_tells_what_came_of_it(served: Served) -> None:
    admin = served.client()
    with receiving() as receiver:
        made = admin.post("/v1/webhooks", json={"name": "hook", "url": receiver.url}).json()
        body = admin.post("/v1/webhooks/hook/test").json()
        assert (body["delivered"], body["status"], body["failure"]) == (True, 204, None)
        [got] = receiver.got
        assert got.event["type"] == "tamis.test"
        assert verify(got.headers, got.body, made["secret"]) == got.event["id"]
        receiver.otherwise = Reply(500)
        body = admin.post("/v1/webhooks/hook/test").json()
        assert (body["delivered"], body["status"], body["failure"]) == (False, 500, "answered with 500")
    body = admin.post("/v1/webhooks/hook/test").json()
    assert (body["delivered"], body["status"]) == (False, None)
    assert "connection" in body["failure"]


def test_without_an_outbox_that_has_all_there_are_no_webhooks(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, SOURCES + '[[sink]]\npath = "outbox"\nform = "xml"\n')) as served:
        refused = served.client().post("/v1/webhooks", json={"name": "hook", "url": URL})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "no-mailbox")


def certificate(folder: Path, name: str) -> Path:
    """A certificate for a name, signed by itself, with its key."""
    file = folder / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    more = ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    subprocess.run(
        [*command, *more, "-keyout", file, "-out", folder / "public"], check=True, capture_output=True
    )
    file.write_text(file.read_text() + (folder / "public").read_text())
    return file


def test_tls_knows_the_host_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though what is connected to is an address; and a certificate that is for another name is refused."""
    file = certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    asked: list[str] = []
    context.sni_callback = lambda socket, name, context: asked.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with receiving(tls=context) as receiver, serving(settings_in(tmp_path, SOURCES + ALLOW)) as served:
        admin = served.client()
        for name, host in (("good", "localhost"), ("bad", "127.0.0.1")):
            url = f"https://{host}:{receiver.port}/"
            assert admin.post("/v1/webhooks", json={"name": name, "url": url}).status_code == 201
        assert admin.post("/v1/webhooks/good/test").json()["status"] == 204
        refused = admin.post("/v1/webhooks/bad/test").json()
        assert (refused["status"], "certificate" in refused["failure"]) == (None, True)
        assert [got.headers["host"] for got in receiver.got] == [f"localhost:{receiver.port}"]
    assert asked[0] == "localhost"


def test_the_clients_have_verbs_for_it(tmp_path: Path) -> None:
    async def use(url: str, token: str, hook: str) -> None:
        async with AsyncClient(url, token) as client:
            assert (await client.add_webhook("async", hook))["secret"]
            assert (await client.test_webhook("async"))["delivered"]
            assert (await client.rotate_webhook("async"))["previous_until"]
            assert [one["name"] for one in await client.webhooks()] == ["async"]
            assert (await client.change_webhook("async", state="disabled"))["state"] == "disabled"
            await client.remove_webhook("async")
            await client.remove_webhook("async")

    with receiving() as receiver, serving(settings_in(tmp_path, SOURCES + ALLOW)) as served:
        secret = served.secret(Role.ADMIN)
        asyncio.run(use(served.url, secret, receiver.url))
        with Client(served.url, secret) as client:
            made = client.add_webhook("hook", receiver.url, subscriber="ann")
            assert client.test_webhook("hook")["status"] == 204
            got = receiver.got[-1]
            assert verify(got.headers, got.body, made["secret"]) == got.id
            changed = client.rotate_webhook("hook", overlap=0)
            client.test_webhook("hook")
            got = receiver.got[-1]
            assert verify(got.headers, got.body, [changed["secret"]]) == got.id
            assert client.webhooks()[0]["subscriber"] == "ann"
            client.subscribe("//a", subscriber="ann", delivery_target="webhook:hook")
            with pytest.raises(ClientError, match="webhook-used"):
                client.remove_webhook("hook")
