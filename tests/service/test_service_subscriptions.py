"""Subscriptions over HTTP, with the catalog in each database."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.model.token import Role
from tests.helpers.served import SOURCES, Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path, catalog_url: str) -> Iterator[Served]:
    with serving(settings_in(tmp_path, catalog=catalog_url)) as served:
        yield served


def test_a_subscription_lives_and_ends(served: Served) -> None:
    client = served.client(Role.SUBSCRIBER)
    asked = {"query": "//p:a", "namespaces": {"p": "urn:x"}, "id": "mine/1"}
    made = client.post("/v1/subscriptions", json=asked)
    assert made.status_code == 201
    assert made.json().items() >= {**asked, "subscriber": "ann", "revision": 1, "state": "active"}.items()
    place = "/v1/subscriptions/mine/1"
    assert client.post("/v1/subscriptions", json=asked).json() == made.json()
    assert client.get(place).json() == made.json()
    other = client.post("/v1/subscriptions", json={**asked, "query": "//b"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "subscription-exists")
    changed = client.patch(place, json={"query": "//p:b", "state": "paused"}).json()
    assert (changed["revision"], changed["query"], changed["state"]) == (2, "//p:b", "paused")
    assert client.patch(place, json={"state": "active"}).json()["state"] == "active"
    refused = client.patch(place, json={"query": "//p:b and"})
    assert refused.json()["error"]["position"] == {"offset": 9, "line": 1, "column": 10}
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404
    assert client.delete(place).status_code == 404


def test_lists_are_filtered_and_paged(served: Served) -> None:
    admin = served.client()
    for number in range(5):
        asked = {"id": f"s{number}", "query": f"//q{number}", "subscriber": "ann" if number < 3 else "bob"}
        assert admin.post("/v1/subscriptions", json=asked).status_code == 201
    admin.patch("/v1/subscriptions/s1", json={"state": "paused"})

    def found(**wanted: str | int) -> tuple[list[str], str | None]:
        page = admin.get("/v1/subscriptions", params=wanted).json()
        return [one["id"] for one in page["subscriptions"]], page["next"]

    assert found(limit=2) == (["s0", "s1"], "s1")
    assert found(limit=2, after="s1") == (["s2", "s3"], "s3")
    assert found(limit=2, after="s3") == (["s4"], None)
    assert found(subscriber="bob") == (["s3", "s4"], None)
    assert found(state="paused") == (["s1"], None)
    assert found(text="Q4") == (["s4"], None)
    own = served.client(Role.SUBSCRIBER).get("/v1/subscriptions", params={"subscriber": "bob"}).json()
    assert [one["id"] for one in own["subscriptions"]] == ["s0", "s1", "s2"]


def test_a_subscriber_has_only_its_own(served: Served) -> None:
    admin, ann = served.client(), served.client(Role.SUBSCRIBER)
    assert admin.post("/v1/subscriptions", json={"query": "//a"}).status_code == 422
    admin.post("/v1/subscriptions", json={"id": "s", "query": "//a", "subscriber": "bob"})
    assert ann.get("/v1/subscriptions/s").status_code == 404
    assert ann.patch("/v1/subscriptions/s", json={"state": "paused"}).status_code == 404
    assert ann.delete("/v1/subscriptions/s").status_code == 404
    assert ann.post("/v1/subscriptions", json={"query": "//a", "subscriber": "bob"}).status_code == 403
    mine = ann.post("/v1/subscriptions", json={"query": "//a"}).json()
    given = ann.patch(f"/v1/subscriptions/{mine['id']}", json={"subscriber": "bob"})
    assert given.status_code == 403


def test_many_come_and_go_as_lines(served: Served) -> None:
    admin, other = served.client(), served.client(tenant="other")
    lines = [
        {"prefix_map": "news", "prefixes": {"p": "urn:x"}},
        {"id": "s1", "subscriber": "ann", "query": "//p:a", "namespaces": "news"},
        {"id": "s2", "subscriber": "ann", "query": "//a["},
        {"id": "s3", "subscriber": "ann", "query": "//a", "tenant": "other"},
        {"id": "s4", "subscriber": "bob", "query": "//b or //c < 'x'", "state": "paused"},
    ]
    body = "".join(f"{json.dumps(line)}\n" for line in lines)
    done = admin.post("/v1/subscriptions.jsonl", content=body).json()
    refusals = done.pop("refusals")
    warning = done["warnings"][0]
    assert (warning["line"], warning["code"], warning["column"]) == (5, "compares-numbers", 12)
    assert done == {
        "added": 3,
        "changed": 0,
        "unchanged": 0,
        "refused": 2,
        "warned": 1,
        "warnings": [warning],
    }
    codes = [(refusal["line"], refusal["code"]) for refusal in refusals]
    assert codes[1] == (4, "other-tenant")
    assert (codes[0][0], refusals[0]["column"]) == (3, 5)
    exported = admin.get("/v1/subscriptions.jsonl")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    assert len(exported.text.splitlines()) == 3
    again = admin.post("/v1/subscriptions.jsonl", content=exported.content).json()
    assert (again["unchanged"], again["refused"]) == (3, 0)
    assert other.get("/v1/subscriptions.jsonl").text == ""
    moved = other.post("/v1/subscriptions.jsonl", content=json.dumps(lines[4])).json()
    assert moved["added"] == 1
    assert other.get("/v1/subscriptions").json()["subscriptions"][0]["id"] == "s4"


def test_a_delivery_target_that_no_sink_has(tmp_path: Path) -> None:
    sinks = '[[sink]]\npath = "outbox"\n[[sink]]\nkind = "console"\ntargets = ["screen"]\n'
    with serving(settings_in(tmp_path, SOURCES + sinks)) as served:
        admin = served.client()
        for target, status in (("outbox", 201), ("screen", 201), ("nosuchsink", 422)):
            asked = {"query": "//a", "id": target, "subscriber": "ann", "delivery_target": target}
            assert admin.post("/v1/subscriptions", json=asked).status_code == status
        changed = admin.patch("/v1/subscriptions/outbox", json={"delivery_target": "nosuchsink"})
        assert changed.json()["error"]["code"] == "no-target"
        line = '{"subscriber": "ann", "query": "//a", "delivery_target": "nosuchsink"}'
        done = admin.post("/v1/subscriptions.jsonl", content=line).json()
        assert [one["code"] for one in done["refusals"]] == ["no-target"]


def test_one_subscription_is_shown_with_where_it_is_established(tmp_path: Path) -> None:
    link = "[[link]]\nends = ['a', 'b']\npath = 'links'\n"
    (tmp_path / "network.toml").write_text(f"[[broker]]\nname = 'a'\n[[broker]]\nname = 'b'\n{link}")
    with serving(settings_in(tmp_path, "[broker]\nname = 'a'\n" + SOURCES)) as served:
        client = served.client()
        one = {"query": "//a", "subscriber": "ann", "id": "x"}
        assert client.post("/v1/subscriptions", json=one).json()["established"] is None
        served.catalog.routes.establish({"b": served.catalog.version.count})
        found = client.get("/v1/subscriptions/x").json()
        assert found["established"] == {"brokers": ["b"], "missing": ["a"]}
