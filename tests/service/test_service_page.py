"""Runs the examples of docs/service.md against a service."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from tamis.model.token import Role
from tamis.service.app import application
from tamis.service.service import Service
from tamis.settings import ServeSettings, WebhookSettings, load_settings
from tests.helpers import ROOT
from tests.helpers.delivery_rows import delivery
from tests.helpers.receiver import receiving
from tests.helpers.served import SOURCES, Served, serving, settings_in
from tests.layout.test_docs import run_examples
from tests.service.test_service_deliveries import publish

PAGE = ROOT / "docs" / "service.md"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path, f'{SOURCES}\n[webhooks]\nallow = ["127.0.0.1"]\n')) as served:
        yield served


def test_curl(served: Served) -> None:
    tokens = {"ANN": (Role.SUBSCRIBER, "", "ann"), "FEED": (Role.PUBLISHER, "", None)}
    environment = {name: served.secret(*token) for name, token in tokens.items()}
    answers = []
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        done = subprocess.run(
            ["sh", "-euc", block],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "no_proxy": "*", "URL": served.url, **environment},
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        # Two commands may answer in one block.
        answers.append(re.split(r"(?<=\})(?=\{)", done.stdout))
    subscribed, refused, published, received, tried, webhooks = answers
    assert json.loads(subscribed[0])["id"] == "qlt"
    assert json.loads(refused[0])["error"]["position"] == {"offset": 10, "line": 1, "column": 11}
    assert [one["id"] for text in published for one in json.loads(text)["messages"]] == ["m1", "m2", "m3"]
    assert [json.loads(text) for text in received] == [{"deliveries": [], "next": 0}, {"acknowledged": 0}]
    assert "<c>1</c>" in json.loads(tried[0])["query"]["output"]
    assert json.loads(webhooks[0])["secret"].startswith("whsec_")
    assert json.loads(webhooks[1])["delivery_target"] == "webhook:news"


def test_the_error_that_is_shown_is_the_one_there_is(served: Served) -> None:
    [shown] = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    refused = served.client(Role.SUBSCRIBER).post("/v1/subscriptions", json={"query": "//company["}).json()
    assert json.loads(shown)["error"] == {**refused["error"], "reason": "…"}


def test_python(served: Served, tmp_path: Path) -> None:
    # The job's part: it would take a Spark.
    row = delivery(1, "ann", payload=b"<story><company symbol='QLT'/></story>") | {"message": "m4"}
    publish(tmp_path, 0, [row])
    ann, feed = served.secret(Role.SUBSCRIBER, "", "ann"), served.secret(Role.PUBLISHER)
    tokens = {"ann_token": ann, "feed_token": feed, "admin_token": served.secret(Role.ADMIN)}
    with receiving() as receiver:
        hook = {"hook_url": receiver.url, "received": receiver.got}
        run_examples(PAGE, {"url": served.url, **tokens, **hook})


def test_all_operations_and_settings_are_documented(served: Served, tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    for path in application(Service(served.settings, served.catalog)).openapi()["paths"]:
        assert path in page, path
    [settings] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "shown.toml"
    file.write_text(settings)
    shown = load_settings(file, environment={})
    assert (shown.serve, shown.webhooks) == (ServeSettings(), WebhookSettings())
    for name, kind in (("serve", ServeSettings), ("webhooks", WebhookSettings)):
        assert tomllib.loads(settings)[name].keys() == {field.name for field in fields(kind)}
