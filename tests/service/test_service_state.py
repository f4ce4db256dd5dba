"""Status, sources, sinks, metrics, readiness, and what each role may see."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tamis.model.token import Role
from tamis.service.background.supervisor import Supervisor
from tamis.status import BatchReport, LinkReport, StatusBoard
from tests.helpers.served import SOURCES, Served, serving, settings_in
from tests.helpers.waiting import until


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        yield served


def report(served: Served) -> None:
    """A status as a job writes it."""
    board = StatusBoard(served.settings.state, ["inbox", "others"])
    board.state("running")
    board.generation(3, 7)
    for name in ("inbox", "others"):
        board.report(BatchReport(name, 0, 3, 5, 3, 1, 1, 4, 9, started=datetime.now(UTC), seconds=0.2))
    board.state("running")


def test_the_status_shows_what_is_the_callers(served: Served) -> None:
    admin, other = served.client(), served.client(tenant="other")
    before = admin.get("/v1/status").json()
    assert before["job"] is None
    assert before["waiting_messages"] == {"inbox": 0, "others": 0}
    report(served)
    many = [{"xml": "<a/>"}] * 3
    assert admin.post("/v1/messages", json=many).status_code == 202
    until(lambda: admin.get("/v1/status").json()["waiting_messages"]["inbox"] == 3, "the count")
    body = admin.get("/v1/status").json()
    assert (body["job"]["state"], body["job"]["generation"], body["job"]["subscriptions"]) == (
        "running",
        3,
        7,
    )
    assert [source["name"] for source in body["job"]["sources"]] == ["inbox", "others"]
    assert body["job"]["sources"][0]["totals"]["read"] == 5
    theirs = other.get("/v1/status").json()
    assert [source["name"] for source in theirs["job"]["sources"]] == ["others"]
    assert (theirs["job"]["subscriptions"], theirs["waiting_messages"]) == (None, {"others": 0})
    assert served.client(Role.SUBSCRIBER).get("/v1/status").json()["waiting_deliveries"] == 0


def test_read_messages_are_not_counted_as_waiting(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = served.client()

    def waiting() -> int:
        count: int = admin.get("/v1/status").json()["waiting_messages"]["inbox"]
        return count

    assert admin.post("/v1/messages", json=[{"xml": "<a/>"}] * 3).status_code == 202
    until(lambda: waiting() == 3, "the first messages")
    # A source that had nothing new for a while.
    monkeypatch.setattr("tamis.status.board.RATE_SECONDS", -1.0)
    report(served)
    until(lambda: waiting() == 0, "that they are read")
    assert admin.post("/v1/messages", json=[{"xml": "<b/>"}] * 2).status_code == 202
    until(lambda: waiting() == 2, "the messages after them")


def test_sources_and_sinks(served: Served) -> None:
    admin, other = served.client(), served.client(tenant="other")
    assert [source["name"] for source in admin.get("/v1/sources").json()] == ["inbox", "others"]
    report(served)
    [mine] = other.get("/v1/sources").json()
    assert mine == {
        "name": "others",
        "kind": "directory",
        "tenant": "other",
        "state": "running",
        "waiting": 0,
    }
    [sink] = admin.get("/v1/sinks").json()
    assert (sink["kind"], sink["targets"]) == ("directory", None)
    assert sink["place"].endswith("outbox")
    assert other.get("/v1/sinks").json() == [{"kind": "directory", "targets": None, "place": None}]


def test_prometheus_is_told_by_who_looks_after_the_broker(served: Served) -> None:
    assert served.client(tenant="other").get("/metrics").status_code == 403
    assert served.client(Role.PUBLISHER).get("/metrics").status_code == 403
    admin = served.client()
    assert "tamis_messages_total" not in admin.get("/metrics").text
    report(served)
    admin.get("/v1/subscriptions/none")
    counted = 'tamis_requests_total{method="GET",route="/v1/subscriptions/{id:path}",status="404"} 1.0'
    # A request is counted when all is done: the client may be quicker.
    until(lambda: counted in admin.get("/metrics").text, "the count")
    text = admin.get("/metrics").text
    assert 'tamis_messages_total{source="inbox"} 5.0' in text
    assert 'tamis_waiting{source="inbox"} 0.0' in text


def test_a_service_that_cannot_fill_mailboxes_is_not_ready(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as served:
        plain = served.plain()
        assert plain.get("/ready").status_code == 200
        manifests = tmp_path / "outbox" / "manifests"
        manifests.mkdir(parents=True)
        (manifests / "c-0.json").write_text("{}")
        until(lambda: plain.get("/ready").status_code == 503, "the failure")
        assert plain.get("/ready").json()["error"]["code"] == "not-ready"
        assert plain.get("/health").status_code == 200


def test_a_service_is_ready_when_its_job_runs(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are served before, and what is published waits."""
    plain = served.plain()
    assert plain.get("/ready").status_code == 200, "the job runs elsewhere"
    with monkeypatch.context() as patch:
        patch.setattr(served.service, "supervisor", Supervisor(["true"]))
        board = StatusBoard(served.settings.state)
        for state, status in (("stopped", 503), ("starting", 503), ("running", 200), ("stopping", 503)):
            board.state(state)  # type: ignore[arg-type]
            answer = plain.get("/ready")
            assert answer.status_code == status, state
            if status == 503:
                assert answer.json()["error"]["code"] == "not-ready"


def test_the_network_is_shown_to_who_looks_after_the_broker(tmp_path: Path) -> None:
    link = "[[link]]\nends = ['a', 'b']\npath = 'links'\n"
    (tmp_path / "network.toml").write_text(f"[[broker]]\nname = 'a'\n[[broker]]\nname = 'b'\n{link}")
    with serving(settings_in(tmp_path, "[broker]\nname = 'a'\n" + SOURCES)) as served:
        assert served.client(tenant="other").get("/v1/network").status_code == 403
        admin = served.client()
        assert admin.get("/v1/network").json() == {"broker": "a", "brokers": ["a", "b"], "links": []}
        board = StatusBoard(served.settings.state)
        board.links([LinkReport("a.b", "b", "up", offered=10, messages=4)])
        board.state("running")
        (shown,) = admin.get("/v1/network").json()["links"]
        assert (shown["link"], shown["offered"], shown["messages"]) == ("a.b", 10, 4)
        text = admin.get("/metrics").text
        assert 'tamis_link_messages_total{link="a.b"} 4.0' in text
        assert 'tamis_link_up{link="a.b"} 1.0' in text
