"""`tamis serve` as people run it: with the job, from publishing to the mailbox, through kills."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tamis.catalog import Catalog
from tamis.client import Client
from tests.helpers.jobs import TAMIS, Folder
from tests.helpers.servers import free_port
from tests.helpers.waiting import until

MORE = """
[[source]]
name = "inbox"
path = "inbox"
"""


def output_of(folder: Folder, *arguments: str) -> str:
    """Run a command in the folder; returns its output."""
    done = subprocess.run([*TAMIS, *arguments], capture_output=True, text=True, check=True, cwd=folder.path)
    return done.stdout.strip()


@contextmanager
def serving(folder: Folder, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The service in a child process, which ends with the test in any case."""
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


def token(folder: Folder, role: str, *more: str) -> str:
    return output_of(folder, "tokens", "create", "--role", role, *more)


def test_from_publishing_to_the_mailbox(tmp_path: Path) -> None:
    folder = Folder(tmp_path, MORE)
    port = free_port()
    secrets = [
        token(folder, "admin"),
        token(folder, "publisher"),
        token(folder, "subscriber", "--subscriber", "ann"),
    ]
    assert "subscriber" in output_of(folder, "tokens", "list")
    admin, publisher, ann = (Client(f"http://127.0.0.1:{port}", secret) for secret in secrets)

    def publish(first: int) -> None:
        messages = [(f"m{n}", f"<a><b>{n}</b></a>") for n in range(first, first + 10)]
        assert len(publisher.publish_many(messages)) == 10

    with admin, publisher, ann:
        events = ann.events()
        with serving(folder, port) as service:
            ann.subscribe("for $b in //b return <c>{ $b/text() }</c>")
            publish(0)
            publisher.publish("<a>", id="bad")
            arrived = list(islice(events, 10))
            assert b"<c>0</c>" in arrived[0].payload
            # A batch has its dead letters before it counts, and its deliveries before them.
            until(admin.dead_letters, "the dead letter")
            assert len(ann.match("<b/>", explain=True)["subscriptions"]) == 1
            # The job is killed, and looked after.
            os.killpg(admin.status()["process"]["pid"], signal.SIGKILL)
            publish(10)
            arrived += islice(events, 10)
            assert admin.status()["process"]["starts"] == 2
            # Then the service itself, hard, with accepted messages on their way.
            publish(20)
            service.kill()
            service.wait()
        with serving(folder, port) as service:
            publish(30)
            assert publisher.publish("<a><b>25</b></a>", id="m25") == "m25"
            arrived += islice(events, 20)
            service.send_signal(signal.SIGTERM)
            assert service.wait(timeout=180) == 0
    expected = sorted(f"m{n}" for n in range(40))
    assert sorted(one.message for one in arrived) == expected
    with Catalog(folder.catalog) as catalog:
        kept = catalog.mailbox.pending("", "ann", limit=1000)
    assert sorted(one.message for one in kept) == expected
    log = folder.log.read_text()
    assert not any(secret in log for secret in secrets)
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {"tamis.requests", "tamis.job"} <= {line["logger"] for line in lines}


def test_one_service_per_state_directory_and_the_first_token(tmp_path: Path) -> None:
    folder = Folder(tmp_path, f"{MORE}\n[serve]\njob = false\n")
    port = free_port()
    with serving(folder, port):
        until(lambda: "tamis tokens create --role admin" in folder.log.read_text(), "the hint")
        second = subprocess.run(
            [*TAMIS, "serve", "--port", str(free_port())],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert second.returncode == 1
    assert "service-running" in second.stderr
