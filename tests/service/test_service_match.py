"""Trying messages and queries over HTTP, against the generations of a store."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.matching import Limits
from tamis.model.subscription import NewSubscription, PrefixMap
from tamis.model.token import Role
from tamis.network.tables import EMPTY, TableVersion, changed_hash
from tamis.service.api import matching
from tests.helpers.hostile_messages import MESSAGES
from tests.helpers.served import Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        yield served


def refresh(served: Served) -> int:
    """Publish a generation of the current catalog, as the job does before each batch."""
    store = Store(served.settings.generations)
    with Publisher(served.catalog, store, served.settings.generations) as publisher:
        return publisher.refresh()


def tried(served: Served, role: Role = Role.ADMIN, tenant: str = "", **asked: Any) -> dict[str, Any]:
    answer = served.client(role, tenant).post("/v1/match", json=asked)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_which_subscriptions_match(served: Served) -> None:
    assert tried(served, xml="<a/>")["generation"] is None
    catalog = served.catalog
    catalog.put_prefixes(PrefixMap("news", {"p": "urn:x"}))
    catalog.add(NewSubscription("ann", "/a", id="q1"))
    catalog.add(NewSubscription("bob", "//p:b", id="q2", namespaces="news"))
    catalog.add(NewSubscription("eve", "/a", id="q3", tenant="other"))
    generation = refresh(served)
    message = "<a><b xmlns='urn:x'/></a>"
    body = tried(served, xml=message, explain=True)
    assert body["generation"] == generation
    assert [(one["id"], one["subscriber"]) for one in body["subscriptions"]] == [("q1", "ann"), ("q2", "bob")]
    assert all(one["explanation"]["matches"] for one in body["subscriptions"])
    assert [one["id"] for one in tried(served, Role.SUBSCRIBER, xml=message)["subscriptions"]] == ["q1"]
    assert [one["id"] for one in tried(served, tenant="other", xml=message)["subscriptions"]] == ["q3"]
    limited = tried(served, xml=message, limit=1)
    assert (len(limited["subscriptions"]), limited["more"]) == (1, True)
    # A change shows with its generation, and what is older is no longer explained.
    catalog.change("q1", query="/c")
    assert tried(served, xml=message, explain=True)["subscriptions"][0]["explanation"] is None
    assert refresh(served) > generation
    assert [one["id"] for one in tried(served, xml=message)["subscriptions"]] == ["q2"]


def test_why_a_message_crosses_a_link(served: Served) -> None:
    catalog = served.catalog
    catalog.add(NewSubscription("ann", "/a", id="q1"))
    rows = {("", "//b"), ("", "//c"), ("", "/a/@x='1'"), ("other", "/a")}
    version = TableVersion(1, "m", changed_hash(EMPTY, rows, ()))
    assert catalog.routes.replace("here.there", version, rows)
    refresh(served)
    told = tried(served, xml="<a x='1'><b/></a>")
    assert [one["id"] for one in told["subscriptions"]] == ["q1"]
    link = "here.there"
    assert told["routes"] == [{"link": link, "query": "//b"}, {"link": link, "query": "/a/@x='1'"}]
    assert tried(served, Role.SUBSCRIBER, xml="<a x='1'/>")["routes"] == []
    assert tried(served, tenant="other", xml="<a/>")["routes"] == [{"link": link, "query": "/a"}]


def test_whether_a_query_matches_where_and_what_it_makes(served: Served) -> None:
    message = "<a><b>1</b><b n='2'>2</b></a>"
    body = tried(served, xml=message, query="//b[ @n = 2 ]", explain=True)["query"]
    assert (body["canonical"], body["matches"], body["output"]) == ("//b[@n=2]", True, None)
    [node] = body["nodes"]
    assert message[node["start"] : node["end"]] == "<b n='2'>2</b>"
    assert body["explanation"]["lines"]
    not_so = tried(served, xml=message, query="//c")["query"]
    assert (not_so["matches"], not_so["nodes"]) == (False, [])
    assert not_so["instead"] is None
    elsewhere = tried(served, xml="<a xmlns='urn:x'/>", query="/a")["query"]
    assert (elsewhere["matches"], elsewhere["instead"]) == (False, "/Q{urn:x}a")
    default = tried(served, xml="<a xmlns='urn:x'/>", query="/a", namespaces={"": "urn:x"})["query"]
    assert default["matches"]
    made = tried(served, xml=message, query="for $b in //b return <c>{ $b/text() }</c>")["query"]
    assert made["output"] is not None
    assert "<c>1</c>" in made["output"]


def test_whether_a_text_is_a_query(served: Served) -> None:
    client = served.client(Role.SUBSCRIBER)
    fine = client.post("/v1/check", json={"query": "//b[ @n = 2 ]"}).json()
    assert (fine["canonical"], fine["error"]) == ("//b[@n=2]", None)
    (warning,) = client.post("/v1/check", json={"query": "//b[@n > 'x']"}).json()["warnings"]
    assert (warning["code"], warning["column"]) == ("compares-numbers", 8)
    # A refused query is an answer, in the form of errors.
    wrong = client.post("/v1/check", json={"query": "//é["})
    assert wrong.status_code == 200
    assert wrong.json()["canonical"] is None
    assert wrong.json()["error"]["position"] == {"offset": 5, "line": 1, "column": 5}
    served.catalog.put_prefixes(PrefixMap("shared", {"p": "urn:x"}))
    named: dict[str, Any] = {"query": "//p:b", "namespaces": "shared"}
    assert client.post("/v1/check", json=named).json()["canonical"] == "//Q{urn:x}b"
    assert tried(served, xml="<b xmlns='urn:x'/>", **named)["query"]["matches"]
    unknown = client.post("/v1/check", json={"query": "//p:b", "namespaces": "none"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (422, "unknown-prefix-map")
    assert served.client(Role.PUBLISHER).post("/v1/check", json={"query": "//b"}).status_code == 403


@pytest.mark.parametrize(
    ("asked", "code", "position"),
    [
        ({"xml": "<a>", "query": "//a"}, None, (3, 1, 4)),
        ({"xml": "<a/>", "query": "//a["}, None, (4, 1, 5)),
        ({"xml": "<a/>", "base64": ""}, "bad-request", None),
        ({"base64": "?"}, "bad-request", None),
        ({}, "bad-request", None),
    ],
)
def test_invalid_match_requests_are_refused(
    served: Served, asked: dict[str, str], code: str | None, position: tuple[int, int, int] | None
) -> None:
    answer = served.client().post("/v1/match", json=asked)
    body = answer.json()["error"]
    assert answer.status_code == 422
    assert code in (None, body["code"])
    if position is not None:
        assert body["position"] == dict(zip(("offset", "line", "column"), position, strict=True))


def test_a_query_past_the_work_limit_fails_alone(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    hard = "//*[contains(., 'a0') or contains(., 'a1') or contains(., 'a2')]"
    served.catalog.add(NewSubscription("ann", hard, id="hard"))
    served.catalog.add(NewSubscription("ann", "//e", id="easy"))
    served.catalog.add(NewSubscription("eve", hard, id="other", tenant="other"))
    refresh(served)
    message = f"<r>{'<e>one</e>' * 1000}</r>"
    body = tried(served, xml=message)
    assert ([one["id"] for one in body["subscriptions"]], body["failed"]) == (["easy"], [])
    monkeypatch.setattr(matching, "LIMITS", Limits(work=1000))
    body = tried(served, xml=message, query="/r")
    assert ([one["id"] for one in body["subscriptions"]], body["failed"]) == (["easy"], ["hard"])
    answer = served.client().post("/v1/match", json={"xml": message, "query": hard})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "work-limit")


def test_hostile_messages_are_refused_and_nothing_breaks(served: Served) -> None:
    """The limits are those that hold by default."""
    client = served.client()
    for name, attack in MESSAGES.items():
        message = base64.b64encode(attack.make()).decode()
        answer = client.post("/v1/match", json={"base64": message, "query": "//a"})
        assert answer.status_code in (200, 413, 422), name
        if answer.status_code == 422 and attack.limits == Limits():
            assert answer.json()["error"]["code"] == attack.code, name
        assert client.post("/v1/messages", json={"base64": message}).status_code in (202, 413), name
    assert client.get("/v1/status").status_code == 200
