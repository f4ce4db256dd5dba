"""Access control: tokens, roles, limits; and the form of errors."""

import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tamis.errors import CatalogError
from tamis.model.subscription import NewSubscription, PrefixMap
from tamis.model.token import NewToken, Role
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
    (parsed,) = answer.json().values()
    assert parsed.keys() <= {"code", "reason", "position", "value", "limit"}
    return answer.status_code, parsed["code"]


def test_only_paths_without_data_need_no_token(served: Served) -> None:
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
    parsed = served.client(Role.SUBSCRIBER, "other").get("/v1/token").json()
    assert parsed == {
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
    # A request without Content-Length.
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


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/v1/subscriptions", b"{", "the body is not JSON: Expecting property name"),
        ("/v1/subscriptions", b'{"query": 1}', "body.query: Input should be a valid string"),
        ("/v1/subscriptions", b'{"query": "//a", "namespaces": 1}', "body.namespaces: Input should be"),
        (
            "/v1/subscriptions",
            b'{"query": "//a", "id": "a\\nb"}',
            "body.id: must not have control characters",
        ),
        ("/v1/match", b"{}", "body: a message has either `xml` or `base64`"),
        ("/v1/messages", b"{", "the body is not JSON: EOF while parsing"),
        ("/v1/messages", b"{}", "a message has either `xml` or `base64`"),
        ("/v1/messages", b'[{"xml": "<a/>"}, {"xml": 1}]', "1.xml: Input should be a valid string"),
        ("/v1/messages", b'{"xml": "<a/>", "id": "a\\u001bb"}', "id: must not have control characters"),
    ],
)
def test_errors_speak_of_fields_and_not_of_the_framework(
    served: Served, path: str, body: bytes, reason: str
) -> None:
    answer = served.client().post(path, content=body, headers={"Content-Type": "application/json"})
    assert error(answer) == (422, "bad-request")
    assert answer.json()["error"]["reason"].startswith(reason)


@pytest.mark.parametrize("path", ["/v1/subscriptions", "/v1/messages", "/v1/match", "/v1/webhooks"])
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_type_is_refused_everywhere_alike(
    served: Served, path: str, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = served.client().post(path, content=b'{"xml": "<a/>"}', headers=headers)
    assert error(answer) == (415, "media-type")


def test_a_compressed_body_is_refused(served: Served, tmp_path: Path) -> None:
    headers = {"Content-Type": "application/xml", "Content-Encoding": "gzip"}
    answer = served.client().post("/v1/messages", content=gzip.compress(b"<a/>"), headers=headers)
    assert error(answer) == (415, "media-type")
    assert list((tmp_path / "inbox").iterdir()) == []
    plain = {"Content-Type": "application/xml", "Content-Encoding": "identity"}
    assert served.client().post("/v1/messages", content=b"<a/>", headers=plain).status_code == 202


@pytest.mark.parametrize("sign", ["\n", "\t", "\x1b", "\x7f", "\0"])
def test_names_have_no_control_characters(served: Served, sign: str) -> None:
    """Wherever they come from: a list, a log line and a URL have room for none."""
    catalog = served.catalog
    for new in (
        NewSubscription("ann", "//a", id=f"a{sign}b"),
        NewSubscription(f"a{sign}b", "//a"),
        NewSubscription("ann", "//a", delivery_target=f"a{sign}b"),
        NewSubscription("ann", "//a", tenant=f"a{sign}b"),
    ):
        with pytest.raises(CatalogError, match="bad-value"):
            catalog.add(new)
    with pytest.raises(CatalogError, match="bad-value"):
        catalog.put_prefixes(PrefixMap(f"a{sign}b", {}))
    with pytest.raises(CatalogError, match="bad-value"):
        catalog.tokens.create(NewToken(f"a{sign}b", Role.ADMIN))
    # In a query a line break is fine.
    catalog.add(NewSubscription("ann", "//a\n[b]"))


def test_requests_are_logged_without_their_secrets(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    secret = served.secret(Role.ADMIN)
    with caplog.at_level(logging.INFO):
        answer = served.client().get("/v1/subscriptions?text=private")

        def logged() -> list[logging.LogRecord]:
            return [record for record in caplog.records if record.name == "tamis.requests"]

        # It is said when all is done: the client may be quicker.
        (record,) = until(logged, "the line")
    line = JsonLines().format(record)
    parsed = json.loads(line)
    assert parsed["request"] == answer.headers["x-request-id"]
    assert (parsed["status"], parsed["path"]) == (200, "/v1/subscriptions")
    assert parsed["token"] == served.catalog.tokens.list()[0].id
    assert secret not in line
    assert "private" not in line
