"""Who gets in: tokens, roles, limits; and what errors look like."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tamis.model.token import Role
from tamis.service.api import security
from tamis.service.logs import JsonLines
from tests.helpers.served import Served, serving, settings_in
from tests.helpers.waiting import until


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path, body=10_000)) as served:
        yield served


def error(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a refusal, which has the one form."""
    (told,) = answer.json().values()
    assert told.keys() <= {"code", "reason", "position", "value", "limit"}
    return answer.status_code, told["code"]


def test_only_what_tells_nothing_is_open(served: Served) -> None:
    plain = served.plain()
    for path in security.PUBLIC_PATHS:
        assert plain.get(path).status_code == 200, path
    assert error(plain.get("/v1/subscriptions")) == (401, "no-token")
    assert error(plain.get("/no/such/place")) == (401, "no-token")
    assert plain.get("/v1/subscriptions").headers["www-authenticate"] == "Bearer"
    for header in ("Bearer tamis_wrong", "Basic eDp5", "Bearer", "Bearer \xff"):
        answer = served.plain().get("/v1/subscriptions", headers={b"Authorization": header.encode("latin-1")})
        assert answer.status_code == 401


def test_a_revoked_token_is_good_for_nothing_at_once(served: Served) -> None:
    client = served.client()
    assert client.get("/v1/subscriptions").status_code == 200
    (token,) = served.catalog.tokens.list()
    served.catalog.tokens.revoke(token.id)
    assert error(client.get("/v1/subscriptions")) == (401, "bad-token")


def test_a_role_is_refused_what_is_not_its_own(served: Served) -> None:
    assert error(served.client(Role.PUBLISHER).get("/v1/subscriptions")) == (403, "forbidden")
    assert error(served.client(Role.SUBSCRIBER).get("/v1/subscriptions.jsonl")) == (403, "forbidden")


def test_a_token_can_ask_what_it_is_good_for(served: Served) -> None:
    told = served.client(Role.SUBSCRIBER, "other").get("/v1/token").json()
    assert told == {
        "name": "test",
        "role": "subscriber",
        "tenant": "other",
        "subscriber": "ann",
        "operates": False,
    }
    assert served.client().get("/v1/token").json()["operates"]
    assert not served.client(tenant="other").get("/v1/token").json()["operates"]


def test_requests_are_limited_by_number_and_size(served: Served) -> None:
    client = served.client(rate=1)
    assert client.get("/v1/subscriptions").status_code == 200

    def refusal() -> httpx.Response | None:
        answer = client.get("/v1/subscriptions")
        return answer if answer.status_code != 200 else None

    # Not necessarily the second one, where the machine is slow.
    refused = until(refusal, "a refusal")
    assert error(refused) == (429, "rate-limit")
    assert int(refused.headers["retry-after"]) >= 1
    large = json.dumps({"query": "/" + "a" * 20_000, "subscriber": "ann"})
    headers = {"Content-Type": "application/json"}
    assert error(served.client().post("/v1/subscriptions", content=large, headers=headers)) == (
        413,
        "body-limit",
    )
    # Nobody says how long it is.
    chunks = (large[at : at + 1000].encode() for at in range(0, len(large), 1000))
    answer = served.client().post("/v1/subscriptions", content=chunks, headers=headers)
    assert error(answer) == (413, "body-limit")
    assert answer.json()["error"]["limit"] == 10_000
    small = served.client(body=10).post("/v1/subscriptions", json={"query": "//a", "subscriber": "ann"})
    assert error(small) == (413, "body-limit")


def test_errors_have_one_form(served: Served) -> None:
    client = served.client()
    assert error(client.get("/no/such/place")) == (404, "not-found")
    assert error(client.put("/v1/subscriptions")) == (405, "method-not-allowed")
    assert error(client.post("/v1/subscriptions", json={"queri": "x"})) == (422, "bad-request")
    broken = client.post("/v1/subscriptions", content=b"{", headers={"Content-Type": "application/json"})
    assert error(broken) == (422, "bad-request")
    refused = client.post("/v1/subscriptions", json={"query": "//a[", "subscriber": "ann"})
    assert error(refused)[0] == 422
    assert refused.json()["error"]["position"] == {"offset": 4, "line": 1, "column": 5}


def test_requests_are_logged_without_their_secrets(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    secret = served.secret(Role.ADMIN)
    with caplog.at_level(logging.INFO):
        answer = served.client().get("/v1/subscriptions?text=private")

        def logged() -> list[logging.LogRecord]:
            return [record for record in caplog.records if record.name == "tamis.requests"]

        # It is said when all is done: the client may be quicker.
        (record,) = until(logged, "the line")
    line = JsonLines().format(record)
    told = json.loads(line)
    assert told["request"] == answer.headers["x-request-id"]
    assert (told["status"], told["path"]) == (200, "/v1/subscriptions")
    assert told["token"] == served.catalog.tokens.list()[0].id
    assert secret not in line
    assert "private" not in line
