"""`tamis serve` as people run it: with the job, from publishing to the mailbox, through kills."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from jobs import TAMIS, Folder
from servers import free_port
from tamis.catalog import Catalog
from waiting import until

MORE = """
[[source]]
name = "inbox"
path = "inbox"
"""


def told(folder: Folder, *arguments: str) -> str:
    """What a command prints, run in the folder."""
    done = subprocess.run([*TAMIS, *arguments], capture_output=True, text=True, check=True, cwd=folder.path)
    return done.stdout.strip()


@contextmanager
def serving(folder: Folder, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The service in a process of its own, ended afterwards however the test ends."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAMIS_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with folder.log.open("ab") as log:
        process = subprocess.Popen(
            [*TAMIS, "serve", "--port", str(port)], stdout=log, stderr=log, env=environment, cwd=folder.path
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                # The job stops with it.
                process.terminate()
                process.wait(timeout=180)


def test_from_publishing_to_the_mailbox(tmp_path: Path) -> None:
    folder = Folder(tmp_path, MORE)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    headers = {}
    for role in ("admin", "publisher"):
        secret = told(folder, "tokens", "create", "--role", role)
        headers[role] = {"Authorization": f"Bearer {secret}"}
    secret = told(folder, "tokens", "create", "--role", "subscriber", "--subscriber", "ann")
    headers["ann"] = {"Authorization": f"Bearer {secret}"}
    assert "subscriber" in told(folder, "tokens", "list")
    admin, publisher, ann = (
        httpx.Client(base_url=url, headers=headers[name], timeout=60, trust_env=False)
        for name in ("admin", "publisher", "ann")
    )

    def answers() -> bool:
        try:
            return ann.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    def publish(first: int) -> None:
        many = [{"id": f"m{n}", "xml": f"<a><b>{n}</b></a>"} for n in range(first, first + 10)]
        answer = publisher.post("/v1/messages", json=many)
        assert answer.status_code == 202, answer.text

    def arrived() -> list[str]:
        page = ann.get("/v1/deliveries", params={"limit": 1000}).json()
        return [one["message"] for one in page["deliveries"]]

    with admin, publisher, ann:
        with serving(folder, port) as service:
            until(answers, "the service")
            query = "for $b in //b return <c>{ $b/text() }</c>"
            assert ann.post("/v1/subscriptions", json={"query": query}).status_code == 201
            publish(0)
            assert publisher.post("/v1/messages", json={"id": "bad", "xml": "<a>"}).status_code == 202
            until(lambda: len(arrived()) == 10, "the deliveries")
            first = ann.get("/v1/deliveries").json()["deliveries"][0]
            assert "<c>0</c>" in first["payload"]
            until(lambda: admin.get("/v1/dead-letters").json()["letters"], "the dead letter")
            tried = ann.post("/v1/match", json={"xml": "<b/>", "explain": True}).json()
            assert len(tried["subscriptions"]) == 1
            # The job is killed, and looked after.
            job = admin.get("/v1/status").json()["process"]
            os.killpg(job["pid"], signal.SIGKILL)
            publish(10)
            until(lambda: len(arrived()) == 20, "deliveries of the next job")
            assert admin.get("/v1/status").json()["process"]["starts"] == 2
            # Then the service itself, hard, with accepted messages on their way.
            publish(20)
            service.kill()
            service.wait()
        with serving(folder, port) as service:
            until(answers, "the service again")
            publish(30)
            again = publisher.post("/v1/messages", json={"id": "m25", "xml": "<a><b>25</b></a>"})
            assert again.status_code == 200
            until(lambda: len(arrived()) == 40, "all deliveries")
            service.send_signal(signal.SIGTERM)
            assert service.wait(timeout=180) == 0
    with Catalog(folder.catalog) as catalog:
        found = catalog.mailbox.waiting("", "ann", limit=1000)
    assert sorted(one.message for one in found) == sorted(f"m{n}" for n in range(40))
    log = folder.log.read_text()
    assert not any(header["Authorization"].removeprefix("Bearer ") in log for header in headers.values())
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {"tamis.requests", "tamis.job"} <= {line["logger"] for line in lines}
