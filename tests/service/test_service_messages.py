"""Publishing: an accepted message is stored exactly once, also after crashes."""

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tamis.catalog import Catalog
from tamis.errors import CatalogError
from tamis.model.headers import unpack_headers
from tamis.model.matching import Limits
from tamis.model.token import Role
from tamis.service.errors import ServiceError
from tamis.service.inbox_writer import InboxWriter, NewMessage
from tamis.settings import Settings
from tamis.sources.file_formats import open_reader
from tamis.sources.raw_message import RawMessage
from tests.helpers.served import SOURCES, Served, serving, settings_in

XML = {"Content-Type": "application/xml"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def served(tmp_path: Path, catalog_url: str) -> Iterator[Served]:
    with serving(settings_in(tmp_path, catalog=catalog_url)) as served:
        yield served


def stored(folder: Path, inbox: str = "inbox") -> dict[str, RawMessage]:
    """The messages of an inbox, as the job reads them; fails on duplicates."""
    messages = []
    for path in sorted((folder / inbox).iterdir()):
        if not path.name.startswith("."):
            with open_reader(path, None, Limits(), None) as reader:
                messages += list(reader.messages())
    assert len({message.id for message in messages}) == len(messages)
    return {str(message.id): message for message in messages}


def accepted(answer: httpx.Response) -> list[tuple[str, bool]]:
    assert answer.status_code in (200, 202), answer.text
    return [(one["id"], one["new"]) for one in answer.json()["messages"]]


def test_a_message_is_stored_once_by_its_id(served: Served, tmp_path: Path) -> None:
    client = served.client(Role.PUBLISHER)
    named = {**XML, "Tamis-Message-Id": "m1"}
    first = client.post("/v1/messages", content=b"<a>\xc3\xa9</a>", headers=named)
    assert (first.status_code, first.json()["source"]) == (202, "inbox")
    assert accepted(first) == [("m1", True)]
    again = client.post("/v1/messages", content=b"<a>\xc3\xa9</a>", headers=named)
    assert (again.status_code, accepted(again)) == (200, [("m1", False)])
    [(unnamed, new)] = accepted(client.post("/v1/messages", content="<b/>", headers=XML))
    assert new
    found = stored(tmp_path)
    assert found.keys() == {"m1", unnamed}
    assert (found["m1"].xml, found["m1"].encoding) == ("<a>é</a>".encode(), "UTF-8")


@pytest.mark.parametrize(
    ("content", "charset", "expected"),
    [
        ("<a>é</a>", "iso-8859-1", "<a>é</a>".encode()),
        ("<a>é€</a>", "windows-1252", "<a>é€</a>".encode()),
        ("<a>é</a>", "utf-8", "<a>é</a>".encode()),
        ("<a>é</a>", '"UTF8"', "<a>é</a>".encode()),
        ("<a>e</a>", "iso-8859-1", b"<a>e</a>"),
        ("<?xml version='1.0' encoding='latin1'?><a>é</a>", "iso-8859-1", None),
        ("<?xml version='1.0' encoding='utf-8'?><a>e</a>", "iso-8859-1", None),
        ("\ufeff<a>é</a>", "utf-16", None),
    ],
)
def test_a_charset_tells_the_encoding(
    served: Served, tmp_path: Path, content: str, charset: str, expected: bytes | None
) -> None:
    """Messages that declare their encoding stay as they came: `expected` is None."""
    body = content.encode("utf-16-le" if charset == "utf-16" else charset.strip('"'))
    headers = {"Content-Type": f"application/xml; charset={charset}", "Tamis-Message-Id": "m1"}
    assert (
        served.client(Role.PUBLISHER).post("/v1/messages", content=body, headers=headers).status_code == 202
    )
    assert stored(tmp_path)["m1"].xml == (body if expected is None else expected)


@pytest.mark.parametrize(
    ("body", "charset", "status", "code"),
    [
        (b"<a/>", "utf-7", 415, "media-type"),
        (b"<a>\x81</a>", "windows-1252", 422, "bad-encoding"),
        (b"<a>\xe9</a>", "us-ascii", 422, "bad-encoding"),
        ("<?xml version='1.0' encoding='utf-8'?><a>é</a>".encode(), "latin1", 422, "encoding-mismatch"),
        ("\ufeff<a>é</a>".encode(), "latin1", 422, "encoding-mismatch"),
        ("\ufeff<a/>".encode("utf-16-le"), "utf-8", 422, "encoding-mismatch"),
    ],
)
def test_a_charset_must_be_true(served: Served, body: bytes, charset: str, status: int, code: str) -> None:
    headers = {"Content-Type": f"text/xml; charset={charset}"}
    refused = served.client(Role.PUBLISHER).post("/v1/messages", content=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)


def test_many_at_once_in_either_form(served: Served, tmp_path: Path) -> None:
    client = served.client(Role.PUBLISHER)
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1")
    many = [
        {"id": "m1", "xml": "<a/>"},
        {"id": "m1", "xml": "<b/>"},
        {"id": "m2", "base64": base64.b64encode(latin).decode()},
        {"id": "m3", "xml": "no xml at all\n"},
    ]
    results = [("m1", True), ("m1", False), ("m2", True), ("m3", True)]
    assert accepted(client.post("/v1/messages", json=many)) == results
    lines = "\n".join(json.dumps(one) for one in [*many, {"id": "m4", "xml": "<d/>"}])
    again = accepted(client.post("/v1/messages", content=lines, headers=LINES))
    assert [id for id, new in again if new] == ["m4"]
    assert accepted(client.post("/v1/messages", json={"id": "m5", "xml": "<e/>"})) == [("m5", True)]
    found = stored(tmp_path)
    assert found.keys() == {"m1", "m2", "m3", "m4", "m5"}
    # Bytes stay as they came: the reader sees to what they say of themselves.
    assert (found["m2"].xml, found["m2"].encoding) == (latin, None)
    assert found["m1"].xml == b"<a/>"


def test_each_tenant_has_its_own_sources(served: Served, tmp_path: Path) -> None:
    other = served.client(Role.PUBLISHER, "other")
    assert other.post("/v1/messages", json={"id": "m", "xml": "<a/>"}).json()["source"] == "others"
    refused = other.post("/v1/messages?source=inbox", json={"id": "m", "xml": "<a/>"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "no-source")
    assert stored(tmp_path) == {}
    assert stored(tmp_path, "others").keys() == {"m"}
    # The same id in another source is another message.
    assert accepted(served.client().post("/v1/messages", json={"id": "m", "xml": "<a/>"})) == [("m", True)]


@pytest.mark.parametrize(
    ("content", "headers", "code"),
    [
        (b"", XML, "bad-request"),
        (b"[]", {"Content-Type": "application/json"}, "bad-request"),
        (b"{", {"Content-Type": "application/json"}, "bad-request"),
        (b'{"id": "x"}', {"Content-Type": "application/json"}, "bad-request"),
        (b'{"xml": "<a/>", "base64": ""}', {"Content-Type": "application/json"}, "bad-request"),
        (b'{"base64": "?"}', {"Content-Type": "application/json"}, "bad-request"),
        (b'{"xml": "\xff"}', {"Content-Type": "application/json"}, "bad-request"),
        (b'{"xml": "\\ud800"}', {"Content-Type": "application/json"}, "bad-request"),
        (b'{"xml": "<a/>", "id": "\\u0000"}', {"Content-Type": "application/json"}, "bad-request"),
        (b'{"xml": "<a/>"}\n{"xml": 1}', LINES, "bad-request"),
        (b"<a/>", {"Content-Type": "text/plain"}, "media-type"),
        (b"<a>" + b"x" * 70_000 + b"</a>", XML, "message-limit"),
    ],
)
def test_refused_requests_store_nothing(
    tmp_path: Path, content: bytes, headers: dict[str, str], code: str
) -> None:
    limited = SOURCES.replace('path = "inbox"', 'path = "inbox"\nlimits = { document = 65536 }')
    with serving(settings_in(tmp_path, limited)) as served:
        answer = served.client().post("/v1/messages", content=content, headers=headers)
        assert (answer.status_code // 100, answer.json()["error"]["code"]) == (4, code)
        assert list((tmp_path / "inbox").iterdir()) == []


def test_a_full_inbox_is_said(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, backlog=3)) as served:
        client = served.client()
        many = [{"id": f"m{n}", "xml": "<a/>"} for n in range(3)]
        assert client.post("/v1/messages", json=many).status_code == 202
        refused = client.post("/v1/messages", json={"id": "m9", "xml": "<a/>"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "backlog")
        assert int(refused.headers["retry-after"]) > 0


def test_a_full_disk_accepts_nothing_and_recovers(small_disk: Path, tmp_path: Path) -> None:
    sources = f'[[source]]\nname = "inbox"\npath = "{small_disk}/inbox"\n'
    with serving(settings_in(tmp_path, sources)) as served:
        client = served.client()
        large = {"id": "large", "xml": "<a>" + "x" * 400_000 + "</a>"}
        refused = client.post("/v1/messages", json=large)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "disk-full")
        assert list((small_disk / "inbox").iterdir()) == []
        assert accepted(client.post("/v1/messages", json={"id": "large", "xml": "<a/>"})) == [("large", True)]


def test_publishers_at_the_same_time_share_the_work_and_lose_nothing(served: Served, tmp_path: Path) -> None:
    def publish(who: int) -> None:
        with httpx.Client(base_url=served.url, headers=headers, timeout=60, trust_env=False) as client:
            for number in range(10):
                # Every second one is what all send.
                id = f"m{number}" if number % 2 else f"m{who}-{number}"
                news.append(client.post("/v1/messages", json={"id": id, "xml": "<a/>"}).json())

    headers = {"Authorization": f"Bearer {served.secret(Role.PUBLISHER)}"}
    news: list[dict[str, list[dict[str, object]]]] = []
    threads = [threading.Thread(target=publish, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fresh = [one["id"] for answer in news for one in answer["messages"] if one["new"]]
    assert len(fresh) == len(set(fresh)) == 8 * 5 + 5
    assert stored(tmp_path).keys() == set(fresh)


def publishing(settings: Settings, catalog: Catalog) -> InboxWriter:
    return InboxWriter(catalog.accepted, settings.sources, 1000)


DYING = """
import os, sys
from pathlib import Path
from tamis.catalog import Catalog
from tamis.service.inbox_writer import NewMessage, InboxWriter
from tamis.settings import load_settings

settings = load_settings(Path(sys.argv[1]), environment={})
catalog = Catalog(sys.argv[2])
publishing = InboxWriter(catalog.accepted, settings.sources, 1000)
setattr({"accept": catalog.accepted, "_rename": publishing}[sys.argv[3]], sys.argv[3], lambda *_: os._exit(9))
publishing.publish(publishing.source(""), [NewMessage("m1", "<a/>")])
"""


@pytest.mark.parametrize(("step", "survives"), [("accept", False), ("_rename", True)])
def test_a_crash_loses_and_doubles_nothing(
    tmp_path: Path, catalog_url: str, step: str, survives: bool
) -> None:
    """The process dies before the catalog records the message, or before the file is renamed."""
    settings = settings_in(tmp_path)
    command = [sys.executable, "-c", DYING, str(tmp_path / "tamis.toml"), catalog_url, step]
    assert subprocess.run(command, check=False).returncode == 9
    assert stored(tmp_path) == {}
    assert len(list((tmp_path / "inbox").iterdir())) == 1
    with Catalog(catalog_url) as catalog:
        again = publishing(settings, catalog)
        again.recover()
        assert stored(tmp_path).keys() == ({"m1"} if survives else set())
        fresh = again.publish(again.source(""), [NewMessage("m1", "<a/>")])
        assert fresh == (set() if survives else {"m1"})
    assert stored(tmp_path).keys() == {"m1"}
    assert len(list((tmp_path / "inbox").iterdir())) == 1


def test_messages_that_the_catalog_cannot_record_are_not_accepted(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with Catalog(settings.catalog) as catalog:
        first = publishing(settings, catalog)
        source = first.source("")
        with pytest.MonkeyPatch.context() as patch:

            def refuse(*_: object) -> None:
                raise CatalogError("catalog-unreachable", "away")

            patch.setattr(catalog.accepted, "accept", refuse)
            with pytest.raises(CatalogError, match="away"):
                first.publish(source, [NewMessage("m1", "<a/>")])
        assert list((tmp_path / "inbox").iterdir()) == []
        # Nor is a message accepted after an unexpected error: here, by a lone surrogate.
        with pytest.raises(UnicodeEncodeError):
            first.publish(source, [NewMessage("m1", "<a>\ud800</a>")])
        assert list((tmp_path / "inbox").iterdir()) == []
        assert first.publish(source, [NewMessage("m1", "<a/>")]) == {"m1"}
        assert first.publish(source, [NewMessage("m2", "<a/>")]) == {"m2"}
        # Files in the inbox are forgotten.
        assert len(catalog.accepted.entering()) == 1
        limited = replace(source, limits=Limits(document=1))
        with pytest.raises(ServiceError, match="message-limit"):
            first.publish(limited, [NewMessage("m3", "<a/>")])


def test_messages_have_headers(served: Served, tmp_path: Path) -> None:
    publisher = served.client(Role.PUBLISHER)
    given = {"Tamis-Header-Priority": "high", "Tamis-Header-Name": "é", "Tamis-Message-Id": "one"}
    headers = [(name.encode(), value.encode()) for name, value in (XML | given).items()]
    accepted(publisher.post("/v1/messages", content=b"<a/>", headers=headers))
    many = [
        {"id": "two", "xml": "<a/>", "headers": {"Priority": "low"}},
        {"id": "three", "base64": base64.b64encode("<a/>".encode("utf-16")).decode(), "headers": {"x": "y"}},
        {"id": "four", "xml": "<a/>", "headers": {}},
    ]
    accepted(publisher.post("/v1/messages", json=many))
    assert {name: unpack_headers(message.headers) for name, message in stored(tmp_path).items()} == {
        "one": {"name": "é", "priority": "high"},
        "two": {"Priority": "low"},
        "three": {"x": "y"},
        "four": {},
    }


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"a b": "x"}, "bad-header"),
        ({"tamis-x": "x"}, "bad-header"),
        ({"a": "x\ny"}, "bad-header"),
        ({"a": "x" * 8192}, "header-limit"),
        ({f"n{n}": "" for n in range(65)}, "header-limit"),
        ({"a": 1}, "bad-request"),
        (["a"], "bad-request"),
    ],
)
def test_bad_headers_are_refused(served: Served, headers: object, code: str) -> None:
    publisher = served.client(Role.PUBLISHER)
    answer = publisher.post("/v1/messages", json={"xml": "<a/>", "headers": headers})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, code)


def test_headers_of_a_request_are_for_one_message(served: Served) -> None:
    publisher = served.client(Role.PUBLISHER)
    given = {"Content-Type": "application/json", "Tamis-Header-A": "b"}
    answer = publisher.post("/v1/messages", content=b'[{"xml": "<a/>"}]', headers=given)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad-request")
    bad = [(b"Content-Type", b"application/xml"), (b"Tamis-Header-A", b"\xff")]
    answer = publisher.post("/v1/messages", content=b"<a/>", headers=bad)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad-header")
