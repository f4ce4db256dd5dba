"""Webhooks, from an outbox to a receiver: each delivery arrives or becomes a dead letter."""

import base64
import hashlib
import hmac
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tamis import cli
from tamis.catalog import Catalog
from tamis.model.signatures import new_secret
from tamis.model.webhook import NewWebhook
from tamis.settings import Settings
from tamis.sinks import webhook as connector
from tests.helpers.delivery_rows import delivery
from tests.helpers.receiver import CLOSE, HANG, Got, Receiver, Reply, receiving
from tests.helpers.served import SOURCES, Served, serving, settings_in
from tests.helpers.servers import free_port
from tests.helpers.waiting import until
from tests.service.test_service_deliveries import polled, publish

HOOK = "webhook:hook"


def settings(folder: Path, catalog: str | None = None, **webhooks: Any) -> Settings:
    """The loopback allowed, and no long pauses."""
    chosen = {"allow": ["127.0.0.1/32"], "schedule": [0.02, 0.02], **webhooks}
    lines = "".join(f"{name} = {value!r}\n" for name, value in chosen.items())
    return settings_in(folder, f"{SOURCES}\n[webhooks]\n{lines}", catalog)


@contextmanager
def hooked(settings: Settings, url: str) -> Iterator[Served]:
    """A service with a webhook."""
    with serving(settings) as served:
        made = served.client().post("/v1/webhooks", json={"name": "hook", "url": url})
        assert made.status_code in (201, 409), made.text
        yield served


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def served(tmp_path: Path, receiver: Receiver) -> Iterator[Served]:
    with hooked(settings(tmp_path), receiver.url) as served:
        yield served


def send(folder: Path, batch: int, numbers: range, target: str = HOOK) -> None:
    """Publish deliveries for a webhook to the outbox, as the job does."""
    publish(folder, batch, [delivery(n) | {"delivery_target": target} for n in numbers])


def webhook(served: Served, name: str = "hook") -> dict[str, Any]:
    shown: dict[str, Any] = served.client().get(f"/v1/webhooks/{name}").json()
    return shown


def letters(served: Served, **wanted: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = served.client().get("/v1/dead-letters", params=wanted).json()["letters"]
    return found


def wait_for_letters(served: Served, count: int) -> list[dict[str, Any]]:
    return until(lambda: found if len(found := letters(served)) >= count else None, "the letters")


def settled(served: Served) -> None:
    until(lambda: webhook(served)["waiting"] == 0, "nothing to wait")


def test_a_receiver_that_fails_and_comes_back_gets_everything(
    tmp_path: Path, receiver: Receiver, catalog_url: str
) -> None:
    tries: Counter[str] = Counter()

    def twice(got: Got) -> Reply:
        tries[got.id] += 1
        return Reply(500 if tries[got.id] <= 2 else 200)

    receiver.choose = twice
    with hooked(settings(tmp_path, catalog_url), receiver.url) as served:
        send(tmp_path, 0, range(20))
        send(tmp_path, 1, range(10, 30))
        until(lambda: len(receiver.got) == 90, "all tries")
        settled(served)
        # Three tries each: the schedule has two pauses. Nothing is in a mailbox.
        assert tries == Counter({f"d{n}": 3 for n in range(30)})
        assert letters(served) == []
        assert polled(served.client(), subscriber="bob") == []
        shown = webhook(served)
        assert shown["state"] == "active"
        assert shown["succeeded"] > shown["created"]
        assert "500" in shown["failure"]
        text = served.client().get("/metrics").text
        for line in ("sent_total 30.0", "failed_total 60.0", "dead_total 0.0", "waiting 0.0"):
            assert f"tamis_webhook_{line}" in text


def test_a_delivery_is_a_cloud_event_with_a_standard_signature(
    served: Served, receiver: Receiver, tmp_path: Path
) -> None:
    secret = served.client().post("/v1/webhooks/hook/rotate", json={"overlap": 0}).json()["secret"]
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1")
    headers = {"headers": '{"priority":"high"}'}
    rows = [delivery(1, payload="<a>é</a>".encode()) | headers, delivery(3, payload=latin)]
    publish(tmp_path, 0, [row | {"delivery_target": HOOK} for row in rows])
    until(lambda: len(receiver.got) == 2, "both")
    first, second = sorted(receiver.got, key=lambda got: got.id)
    assert first.path == "/hook"
    assert first.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert first.headers["content-type"].startswith("application/cloudevents+json")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    stamp = first.headers["webhook-timestamp"]
    signed = b".".join((b"d1", stamp.encode(), first.body))
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert first.headers["webhook-signature"] == f"v1,{signature}"
    assert abs(time.time() - int(stamp)) < 300
    assert first.event == {
        "specversion": "1.0",
        "id": "d1",
        "source": "/sources/inbox",
        "type": "tamis.delivery",
        "time": "2026-01-31T12:30:00.250000+00:00",
        "subject": "m1",
        "datacontenttype": "application/xml",
        "subscription": "s1",
        "revision": 1,
        "subscriber": "bob",
        "generation": 7,
        "headers": '{"priority":"high"}',
        "data": "<a>é</a>",
    }
    assert "headers" not in second.event
    assert base64.b64decode(second.event["data_base64"]) == latin
    assert "data" not in second.event


@pytest.mark.parametrize(
    ("reply", "reported"),
    [
        (Reply(500), "500"),
        (Reply(302, {"Location": "/elsewhere"}), "redirect"),
        (Reply(404, body=b"x" * 1_000_000), "404"),
        (CLOSE, "lost"),
    ],
    ids=["fails", "redirects", "huge", "closes"],
)
def test_failed_deliveries_are_dead_letters_and_can_be_replayed(
    served: Served, receiver: Receiver, tmp_path: Path, reply: Reply, reported: str
) -> None:
    receiver.otherwise = reply
    send(tmp_path, 0, range(2))
    found = wait_for_letters(served, 2)
    assert Counter(receiver.ids) == {"d0": 3, "d1": 3}
    assert {got.path for got in receiver.got} == {"/hook"}
    assert {one["code"] for one in found} == {"webhook-failed"}
    assert all("tried 3 times" in one["reason"] and reported in one["reason"] for one in found)
    [one] = [one for one in found if one["delivery"] == "d0"]
    assert (one["message"], one["subscription"], one["offset"]) == ("m0", "s0", HOOK)
    admin = served.client()
    whole = admin.get("/v1/dead-letters/d0").json()
    assert base64.b64decode(whole["base64"]) == b"<a/>"
    assert webhook(served)["waiting"] == 0
    # A letter is there a moment before it is counted.
    until(lambda: "tamis_webhook_dead_total 2.0" in admin.get("/metrics").text, "the count")
    # It comes back.
    receiver.otherwise = Reply(200, body=b"x" * 1_000_000)
    done = admin.post("/v1/dead-letters/replay", json={"letters": ["d0"]}).json()
    assert done == {"replayed": 1, "refused": []}
    until(lambda: Counter(receiver.ids)["d0"] == 4, "the replay")
    assert receiver.got[-1].event["data"] == "<a/>"
    settled(served)
    again = admin.post("/v1/dead-letters/replay", json={"letters": ["d0"]}).json()
    assert (again["replayed"], "was replayed" in again["refused"][0]) == (0, True)
    arrived = admin.post("/v1/dead-letters/replay", json={"letters": ["d0"], "again": True}).json()
    assert (arrived["replayed"], "was delivered" in arrived["refused"][0]) == (0, True)
    assert len(letters(served)) == 2


def test_the_command_replays_too_and_what_dies_again_is_another_letter(
    served: Served, receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.otherwise = Reply(500)
    send(tmp_path, 0, range(1))
    wait_for_letters(served, 1)
    config = ["--config", str(tmp_path / "tamis.toml")]
    assert cli.main(["dead-letters", "list", *config, "--json"]) == 0
    assert '"delivery": "d0"' in capsys.readouterr().out
    assert cli.main(["dead-letters", "replay", *config, "d0"]) == 0
    assert capsys.readouterr().out == "1 replayed, 0 not\n"
    found = wait_for_letters(served, 2)
    assert Counter(receiver.ids) == {"d0": 6}
    assert sorted(one["replayed"] is not None for one in found) == [False, True]
    receiver.otherwise = Reply()
    assert cli.main(["dead-letters", "replay", *config, "--code", "webhook-failed"]) == 0
    until(lambda: len(receiver.got) == 7, "the second replay")
    settled(served)
    assert cli.main(["dead-letters", "show", *config, "d0", "--raw"]) == 0


def test_a_receiver_that_hangs_times_out_and_delays_no_other(tmp_path: Path, receiver: Receiver) -> None:
    receiver.otherwise = HANG
    with receiving() as other, hooked(settings(tmp_path, timeout=1, concurrency=3), receiver.url) as served:
        admin = served.client()
        assert admin.post("/v1/webhooks", json={"name": "other", "url": other.url}).status_code == 201
        rows = [delivery(n) | {"delivery_target": HOOK} for n in range(2)]
        rows += [delivery(n) | {"delivery_target": "webhook:other"} for n in range(10, 60)]
        publish(tmp_path, 0, rows)
        # On a busy machine some of these may also take too long, and are sent again.
        until(lambda: len(set(other.ids)) == 50, "what is not for the one that hangs")
        found = wait_for_letters(served, 2)
        assert {one["delivery"] for one in found} == {"d0", "d1"}
        assert all("tried 3 times" in one["reason"] and "within 1 s" in one["reason"] for one in found)
        assert set(other.ids) == {f"d{n}" for n in range(10, 60)}


def test_a_receiver_that_answers_410_is_disabled_and_can_be_enabled(
    tmp_path: Path, receiver: Receiver, catalog_url: str
) -> None:
    """Its queued deliveries become dead letters, and so do later ones."""
    receiver.otherwise = Reply(410)
    # One at a time, so that there is something that waits.
    with hooked(settings(tmp_path, catalog_url, concurrency=1), receiver.url) as served:
        admin = served.client()
        send(tmp_path, 0, range(5))
        found = wait_for_letters(served, 5)
        assert {one["code"] for one in found} == {"webhook-gone"}
        assert len(receiver.got) == 1
        shown = webhook(served)
        assert (shown["state"], shown["waiting"]) == ("disabled", 0)
        assert "410" in shown["reason"]
        send(tmp_path, 1, range(5, 6))
        assert {one["code"] for one in wait_for_letters(served, 6)} == {"webhook-gone", "webhook-disabled"}
        refused = admin.post("/v1/dead-letters/replay", json={"letters": ["d5"]}).json()
        assert (refused["replayed"], "disabled" in refused["refused"][0]) == (0, True)
        receiver.otherwise = Reply()
        assert admin.patch("/v1/webhooks/hook", json={"state": "active"}).json()["reason"] is None
        done = admin.post("/v1/dead-letters/replay", json={"source": "inbox"}).json()
        assert done == {"replayed": 6, "refused": []}
        until(lambda: len(receiver.got) == 7, "all of them")
        assert set(receiver.ids) == {f"d{n}" for n in range(6)}
        settled(served)


@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_respected(served: Served, receiver: Receiver, tmp_path: Path, date: bool) -> None:
    asked = formatdate(time.time() + 3600, usegmt=True) if date else "3600"
    receiver.replies = [Reply(503, {"Retry-After": asked})]
    send(tmp_path, 0, range(1))
    held = until(lambda: webhook(served)["held_until"], "that it is held")
    assert held > webhook(served)["created"]
    # Nothing else is sent to it until it is changed.
    send(tmp_path, 1, range(1, 2))
    until(lambda: webhook(served)["waiting"] == 2, "the other one")
    assert receiver.ids == ["d0"]
    served.client().patch("/v1/webhooks/hook", json={"url": receiver.url + "2"})
    until(lambda: len(receiver.got) == 2, "the other one")
    assert receiver.ids == ["d0", "d1"]
    assert receiver.got[1].path == "/hook2"


def test_a_restarted_service_continues_its_queue(tmp_path: Path) -> None:
    port = free_port()
    chosen = settings(tmp_path, schedule=[0.02] * 200)
    with hooked(chosen, f"http://127.0.0.1:{port}/hook") as served:
        send(tmp_path, 0, range(3))
        until(
            lambda: "connection" in (webhook(served)["failure"] or ""),
            "that the connection is lost",
        )
    with receiving(port) as receiver, serving(chosen) as served:
        until(lambda: len(receiver.got) == 3, "what waited")
        settled(served)
        # Which another job delivers again, after it lost its checkpoint.
        send(tmp_path, 1, range(4))
        until(lambda: len(receiver.got) == 4, "what is new")
        settled(served)
        assert sorted(receiver.ids) == ["d0", "d1", "d2", "d3"]
        assert letters(served) == []


PROGRAM = """
import sys
from tamis import cli
from tamis.service.webhooks import sender

# Deliveries that a killed sender has claimed wait for this long.
sender.LEASE = 0.1
sys.exit(cli.main(sys.argv[1:]))
"""


def more(receiver: Receiver, count: int) -> None:
    """Wait for more requests."""
    wanted = len(receiver.got) + count
    until(lambda: len(receiver.got) >= wanted, "more requests")


def test_nothing_is_lost_when_the_service_is_killed_again_and_again(
    tmp_path: Path, receiver: Receiver
) -> None:
    # Short, so that what was claimed is soon due again; and as many tries as that may take on a busy machine.
    chosen = settings(tmp_path, timeout=1, schedule=[0.02] * 50, concurrency=4)
    flags = ["serve", "--config", str(tmp_path / "tamis.toml")]
    with (tmp_path / "tamis.toml").open("a") as file:
        file.write("[serve]\njob = false\n")
    send(tmp_path, 0, range(300))
    with Catalog(chosen.catalog) as catalog, (tmp_path / "log").open("wb") as log:
        catalog.webhooks.create(NewWebhook("hook", receiver.url, new_secret()))
        for kill in (True, True, False):
            command = [sys.executable, "-c", PROGRAM, *flags, "--port", str(free_port())]
            process = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                if kill:
                    more(receiver, 50)
                    process.kill()
                else:
                    until(lambda: len(set(receiver.ids)) == 300, "all of them")
                    until(lambda: catalog.outgoing.count() == 0, "that it is noted")
            finally:
                process.terminate()
                process.wait()
        assert catalog.dead_deliveries.claim_batches() == []
    # Repeated deliveries have the same id.
    assert {got.id for got in receiver.got} == {got.event["id"] for got in receiver.got}
    assert len(set(receiver.ids)) == 300


def test_while_a_secret_is_rotated_both_are_good(served: Served, receiver: Receiver, tmp_path: Path) -> None:
    admin = served.client()
    old = admin.post("/v1/webhooks/hook/rotate", json={"overlap": 0}).json()["secret"]
    new = admin.post("/v1/webhooks/hook/rotate", json={}).json()["secret"]
    assert webhook(served)["previous_until"] is not None
    send(tmp_path, 0, range(1))
    until(lambda: receiver.got, "a request")
    [got] = receiver.got
    signatures = got.headers["webhook-signature"].split(" ")
    signed = b".".join((b"d0", got.headers["webhook-timestamp"].encode(), got.body))
    for secret, signature in zip((new, old), signatures, strict=True):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert signature == f"v1,{made}"


def test_a_host_with_two_addresses_is_reached_by_either(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ["127.0.0.2", "127.0.0.1"]
    monkeypatch.setattr(connector, "_addresses", lambda host, port: found)
    with hooked(settings(tmp_path, allow=["127.0.0.0/8"]), f"http://two.example:{receiver.port}/") as served:
        assert served.client().post("/v1/webhooks/hook/test").json()["status"] == 204
    assert receiver.got[0].headers["host"] == f"two.example:{receiver.port}"


def test_a_name_that_leads_to_where_nobody_may_go_is_not_connected_to(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it led elsewhere before, or leads elsewhere too."""
    chosen = settings(tmp_path, allow=["127.0.0.2/32"])
    with hooked(chosen, f"http://localhost:{receiver.port}/") as served:
        assert served.client().post("/v1/webhooks/hook/test").json()["status"] is None
        send(tmp_path, 0, range(1))
        [letter] = wait_for_letters(served, 1)
        assert "resolves to a forbidden address" in letter["reason"]
        for found in (["127.0.0.2", "127.0.0.1"], ["127.0.0.1"], ["::ffff:127.0.0.2"], ["169.254.169.254"]):
            monkeypatch.setattr(connector, "_addresses", lambda host, port, found=found: found)
            reported = served.client().post("/v1/webhooks/hook/test").json()
            assert "resolves to a forbidden address" in reported["failure"], found
    assert receiver.got == []
