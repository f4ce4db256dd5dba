"""Mailboxes over HTTP: filled from an outbox, polled, streamed, acknowledged."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tamis.model.batch import Batch
from tamis.model.token import Role
from tamis.service.api import deliveries
from tamis.sinks.outbox import Outbox
from tests.helpers.delivery_rows import batches, delivery
from tests.helpers.served import SOURCES, Served, serving, settings_in
from tests.helpers.waiting import until


@pytest.fixture
def served(tmp_path: Path, catalog_url: str) -> Iterator[Served]:
    with serving(settings_in(tmp_path, catalog=catalog_url)) as served:
        yield served


def publish(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """Publish the deliveries of a batch to the outbox, as the job does."""
    outbox = Outbox(folder / "outbox")
    ordered = sorted(rows, key=lambda row: str(row["tenant"]))
    outbox.publish(Batch("c", number), outbox.write(Batch("c", number), 0, batches(ordered)))


def polled(client: httpx.Client, **wanted: Any) -> list[str]:
    answer = client.get("/v1/deliveries", params=wanted)
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["deliveries"]]


def test_a_mailbox_is_polled_and_acknowledged(served: Served, tmp_path: Path) -> None:
    bob, eve = served.client(Role.SUBSCRIBER, "", "bob"), served.client(Role.SUBSCRIBER, "", "eve")
    other = served.client(Role.SUBSCRIBER, "other", "bob")
    rows = [delivery(n, "bob") for n in range(4)] + [delivery(8, "eve"), delivery(9, "bob", "other")]
    publish(tmp_path, 0, rows)
    until(lambda: len(polled(bob)) == 4, "the deliveries")
    page = bob.get("/v1/deliveries", params={"limit": 2}).json()
    assert [one["id"] for one in page["deliveries"]] == ["d0", "d1"]
    assert page["deliveries"][0].items() >= {"message": "m0", "subscription": "s0", "payload": "<a/>"}.items()
    assert polled(bob, after=page["next"]) == ["d2", "d3"]
    assert [one.get("headers") for one in page["deliveries"]] == [{"b": "é", "priority": "high"}, None]
    assert (polled(eve), polled(other)) == (["d8"], ["d9"])
    admin = served.client()
    assert polled(admin, subscriber="eve") == ["d8"]
    assert admin.get("/v1/deliveries").status_code == 422
    assert bob.get("/v1/deliveries", params={"subscriber": "eve"}).status_code == 403
    done = bob.post("/v1/deliveries/ack", json={"ids": ["d3", "d8", "d9"], "until": page["next"]})
    assert done.json() == {"acknowledged": 3}
    assert (polled(bob), polled(eve), polled(other)) == (["d2"], ["d8"], ["d9"])


def test_no_delivery_is_repeated_after_a_restart(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    publish(tmp_path, 0, [delivery(n) for n in range(3)])
    with serving(settings) as served:
        bob = served.client(Role.SUBSCRIBER, "", "bob")
        until(lambda: polled(bob) == ["d0", "d1", "d2"], "the deliveries")
        bob.post("/v1/deliveries/ack", json={"ids": ["d0"]})
    # A checkpoint that was reset makes the job deliver again, under the same ids.
    publish(tmp_path, 1, [delivery(0), delivery(2), delivery(4)])
    with serving(settings) as served:
        again = served.client(Role.SUBSCRIBER, "", "bob")
        until(lambda: "d4" in polled(again), "the next one")
        assert polled(again) == ["d1", "d2", "d4"]


def test_a_part_that_fails_unforeseen_is_begun_again(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tamis.service.service.RESTART_SECONDS", 0.1)
    follower = served.service.outbox_follower
    assert follower is not None
    with monkeypatch.context() as patch:
        patch.setattr(follower, "poll", lambda: 1 // 0)
        until(lambda: "a background task failed" in caplog.text, "the failure")
        assert served.plain().get("/ready").status_code == 503
    publish(tmp_path, 0, [delivery(1)])
    until(lambda: polled(served.client(Role.SUBSCRIBER, "", "bob")), "the delivery")
    until(lambda: served.plain().get("/ready").status_code == 200, "that it is ready")


def test_deliveries_with_a_separate_sink_are_in_no_mailbox(tmp_path: Path) -> None:
    sinks = '[[sink]]\npath = "outbox"\n[[sink]]\nkind = "console"\ntargets = ["screen"]\n'
    with serving(settings_in(tmp_path, SOURCES + sinks)) as served:
        publish(tmp_path, 0, [delivery(1) | {"delivery_target": "screen"}, delivery(2)])
        bob = served.client(Role.SUBSCRIBER, "", "bob")
        until(lambda: polled(bob), "the delivery")
        assert polled(bob) == ["d2"]


def test_payloads_that_are_no_text_are_base64(served: Served, tmp_path: Path) -> None:
    bob = served.client(Role.SUBSCRIBER, "", "bob")
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1")
    publish(tmp_path, 0, [delivery(1, payload=latin), delivery(3, payload="<a>é</a>".encode())])
    until(lambda: polled(bob), "the deliveries")
    first, second = bob.get("/v1/deliveries").json()["deliveries"]
    assert (first["payload"], second["payload"], second["base64"]) == (None, "<a>é</a>", None)
    assert first["base64"].startswith("PD94bWw")


@contextmanager
def streamed(client: httpx.Client, **headers: str) -> Iterator[Iterator[str]]:
    """The lines of an event stream."""
    with client.stream("GET", "/v1/deliveries/events", headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield answer.iter_lines()


def event(lines: Iterator[str]) -> tuple[str, str]:
    """The next event: its id, and the id of its delivery."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line and "data" in fields:
            return fields["id"], json.loads(fields["data"])["id"]
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
    raise AssertionError("the stream ended")


def test_deliveries_arrive_as_events_and_a_break_loses_none(served: Served, tmp_path: Path) -> None:
    bob = served.client(Role.SUBSCRIBER, "", "bob")
    publish(tmp_path, 0, [delivery(1), delivery(2)])
    with streamed(bob) as lines:
        assert event(lines)[1] == "d1"
        last, id = event(lines)
        assert id == "d2"
        publish(tmp_path, 1, [delivery(3)])
        assert event(lines)[1] == "d3"
    with streamed(bob, **{"Last-Event-ID": last}) as lines:
        assert event(lines)[1] == "d3"
    with streamed(bob) as lines:
        assert event(lines)[1] == "d1"
    refused = bob.get("/v1/deliveries/events", headers={"Last-Event-ID": "x"})
    assert refused.status_code == 422


def test_a_stream_says_that_it_is_there_until_its_token_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "HEARTBEAT", 0.05)
    with serving(settings_in(tmp_path)) as served:
        with streamed(served.client(Role.SUBSCRIBER)) as lines:
            assert next(line for line in lines if line == ": still here")
            (token,) = served.catalog.tokens.list()
            served.catalog.tokens.revoke(token.id)
            assert set(lines) <= {"", ": still here"}
        # A stream that waits does not hold up the end of the service.
        monkeypatch.setattr(deliveries, "HEARTBEAT", 600)
        ann = served.client(Role.SUBSCRIBER, "", "bob")
        waiting = ann.stream("GET", "/v1/deliveries/events")
        answer = served.stack.enter_context(waiting)
        assert next(answer.iter_lines()) == ": here"
