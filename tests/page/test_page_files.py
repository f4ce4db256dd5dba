"""The files of the page: access, caching, and the content security policy."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.service.page import PATHS
from tests.helpers.served import Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        yield served


def test_files_are_for_everybody_and_sent_once(served: Served) -> None:
    plain = served.plain()
    for path in PATHS:
        answer = plain.get(path)
        assert answer.status_code == 200, path
        again = plain.get(path, headers={"If-None-Match": f'"other", W/{answer.headers["etag"]}'})
        assert (again.status_code, again.content) == (304, b""), path
        assert plain.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
        assert plain.head(path).status_code == 200
    assert plain.get("/").headers["content-type"] == "text/html; charset=utf-8"
    assert plain.get("/page/js/main.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_there_are_no_other_files(served: Served) -> None:
    client = served.client()
    for path in ("/page/__init__.py", "/page/", "/page/js", "/page/js/../__init__.py", "/page/%2e%2e/app.py"):
        assert client.get(path).status_code == 404, path


def test_browsers_are_told_to_be_strict(served: Served) -> None:
    headers = served.plain().get("/").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_files_name_nothing_elsewhere_and_only_what_is_there(served: Served) -> None:
    plain = served.plain()
    for path in PATHS:
        text = plain.get(path).text
        named = [
            url for url in re.findall(r"https?://[^\s\"']+", text) if not url.startswith("http://www.w3.org/")
        ]
        assert named == [], path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b|document\.write", text), path
        if path.endswith(".js"):
            folder = path.rpartition("/")[0]
            for name in re.findall(r'from "(\.[^"]+)"', text):
                # As a browser finds it.
                parts = f"{folder}/{name}".replace("/./", "/").split("/")
                while ".." in parts:
                    at = parts.index("..")
                    del parts[at - 1 : at + 1]
                assert "/".join(parts) in PATHS, f"{path}: {name}"
        if path == "/":
            assert "<style" not in text
            assert set(re.findall(r'(?:src|href)="(/page/[^"]+)"', text)) <= PATHS


def test_the_functions_that_are_offered_are_those_of_the_language(served: Served) -> None:
    page = (Path(__file__).parents[2] / "docs/language.md").read_text()
    rows = page[page.index("### Functions") :].split("\n\n")[1].splitlines()
    listed = {name for row in rows for name in re.findall(r"`([\w:-]+)\(", row.split(" | ")[0])}
    offered = re.findall(r'"([\w:-]+)"', served.plain().get("/page/js/functions.js").text)
    assert sorted(listed) == sorted(offered)
    assert len(listed) > 40
