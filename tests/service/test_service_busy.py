"""One kind of work that takes long does not hold up the others, nor one token the other tokens."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tamis.catalog import Catalog
from tamis.catalog.accepted import Accepted
from tamis.errors import CatalogError
from tamis.model.token import Role
from tamis.service import service as limits
from tamis.service.api import matching
from tests.helpers.served import Served, serving, settings_in
from tests.helpers.waiting import SECONDS, until


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        yield served


class Blocked:
    """A function that waits until the test releases it."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.waiting = 0
        self.released = threading.Event()

    def __call__(self, *arguments: Any) -> Any:
        self.waiting += 1
        assert self.released.wait(SECONDS)
        return self._function(*arguments)


def send(served: Served, headers: dict[str, str], path: str, json: Any) -> httpx.Response:
    with httpx.Client(base_url=served.url, headers=headers, timeout=SECONDS, trust_env=False) as client:
        return client.post(path, json=json)


def done(answers: list["Future[httpx.Response]"]) -> list[httpx.Response]:
    return [answer.result() for answer in answers if answer.done()]


def test_a_token_that_tries_messages_does_not_delay_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = Blocked(matching._try_query)
    monkeypatch.setattr(matching, "_try_query", blocked)
    secret = served.secret(Role.SUBSCRIBER, "", "ann")
    greedy = {"Authorization": f"Bearer {secret}"}
    other = served.client(Role.SUBSCRIBER, "other", "bob")
    count, allowed = 45, limits.MATCH_REQUESTS
    with ThreadPoolExecutor(count) as threads:
        json = {"xml": "<a/>", "query": "//a"}
        answers = [threads.submit(send, served, greedy, "/v1/match", json) for _ in range(count)]
        try:
            until(lambda: blocked.waiting and len(done(answers)) == count - allowed, "the refusals")
            # One request runs, and a thread is left for other tokens.
            assert blocked.waiting == 1
            assert other.get("/v1/token").status_code == 200
            assert other.post("/v1/match", json={"xml": "<a/>"}).status_code == 200
            refused = done(answers)[0]
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "concurrency-limit")
            assert refused.json()["error"]["limit"] == allowed
            assert int(refused.headers["retry-after"]) >= 1
        finally:
            blocked.released.set()
        assert Counter(one.result().status_code for one in answers) == {200: allowed, 429: count - allowed}


def test_publishers_that_wait_for_the_catalog_do_not_delay_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = Blocked(served.catalog.accepted.known)
    monkeypatch.setattr(Accepted, "known", lambda _, *arguments: blocked(*arguments))
    publisher = {"Authorization": f"Bearer {served.secret(Role.PUBLISHER)}"}
    allowed = limits.PUBLISH_THREADS + limits.PUBLISH_QUEUE
    count = allowed + 5
    with ThreadPoolExecutor(count) as threads:
        json = {"xml": "<a/>"}
        answers = [threads.submit(send, served, publisher, "/v1/messages", json) for _ in range(count)]
        try:
            until(lambda: blocked.waiting and len(done(answers)) == count - allowed, "the refusals")
            assert served.client(tenant="other").get("/v1/token").status_code == 200
            assert served.client(tenant="other").get("/v1/subscriptions").status_code == 200
            refused = done(answers)[0]
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
            assert int(refused.headers["retry-after"]) >= 1
        finally:
            blocked.released.set()
        assert Counter(one.result().status_code for one in answers) == {202: allowed, 503: count - allowed}


def test_a_locked_catalog_is_reported_soon(tmp_path: Path) -> None:
    """Writers that wait at the same time do not wait one after the other."""
    with Catalog(str(tmp_path / "catalog.db"), busy_seconds=0.1) as catalog, ThreadPoolExecutor() as threads:
        blocked = Blocked(lambda _: None)
        writer = threads.submit(catalog._database.write_unversioned, blocked)
        try:
            until(lambda: blocked.waiting, "the writer")
            with pytest.raises(CatalogError, match="catalog-locked"):
                catalog.accepted.accept([("inbox", "m1")], ["f1"], [])
            # Readers do not wait.
            assert catalog.tokens.find("none") is None
        finally:
            blocked.released.set()
        writer.result()
        catalog.accepted.accept([("inbox", "m1")], ["f1"], [])


def test_a_file_that_another_process_locks_is_503(served: Served) -> None:
    client = served.client(Role.PUBLISHER)
    with closing(sqlite3.connect(served.settings.catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert client.get("/v1/token").status_code == 200
        refused = client.post("/v1/messages", json={"id": "m1", "xml": "<a/>"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "catalog-locked")
        assert int(refused.headers["retry-after"]) >= 1
        other.execute("ROLLBACK")
    assert client.post("/v1/messages", json={"id": "m1", "xml": "<a/>"}).status_code == 202
