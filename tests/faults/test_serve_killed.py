"""The service and its job are killed while messages are published: accepted ones are delivered once."""

import os
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path

import httpx

from tamis.catalog import Catalog
from tamis.client import Client
from tests.helpers.jobs import Folder
from tests.helpers.servers import free_port
from tests.helpers.waiting import until
from tests.service.test_serve import MORE, serving, token

BATCH = 5

PACE = 0.05
"""Seconds between two requests: the job, too, needs the machine."""


class Publisher(threading.Thread):
    """Publishes all the time, and tries nothing again."""

    def __init__(self, url: str, secret: str) -> None:
        super().__init__()
        headers = {"Authorization": f"Bearer {secret}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)
        self._ended = threading.Event()
        self.accepted: set[str] = set()
        self.unknown: set[str] = set()
        """Nobody answered: they may have been accepted."""

    def run(self) -> None:
        number = 0
        with self._http:
            while not self._ended.is_set():
                ids = [f"m{number + n}" for n in range(BATCH)]
                number += BATCH
                try:
                    messages = [{"id": id, "xml": f"<a><b>{id}</b></a>"} for id in ids]
                    answer = self._http.post("/v1/messages", json=messages)
                except httpx.TransportError:
                    self.unknown.update(ids)
                else:
                    assert answer.status_code == 202, answer.text
                    self.accepted.update(ids)
                self._ended.wait(PACE)

    def more(self, count: int) -> None:
        """Wait until so many more are accepted."""
        wanted = len(self.accepted) + count
        until(lambda: len(self.accepted) >= wanted or not self.is_alive(), "the service to accept messages")
        assert self.is_alive()

    def end(self) -> None:
        """Publish no more; nothing if it has ended."""
        self._ended.set()
        if self.is_alive():
            self.join()


def test_accepted_messages_are_delivered_once_through_kills(tmp_path: Path) -> None:
    folder = Folder(tmp_path, MORE)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    admin = Client(url, token(folder, "admin", "--rate", "100000"))
    publisher = Publisher(url, token(folder, "publisher", "--rate", "100000"))

    def arrived(catalog: Catalog) -> list[str]:
        return [one.message for one in catalog.mailbox.pending("", "ann", limit=1_000_000)]

    def kill(service: "subprocess.Popen[bytes]") -> None:
        """Kill the service, then its job, which is no longer supervised."""
        job = admin.status()["process"]["pid"]
        service.kill()
        service.wait()
        if job is not None:
            os.killpg(job, signal.SIGKILL)

    with admin, Catalog(folder.catalog) as catalog:
        try:
            with serving(folder, port) as service:
                admin.subscribe("//b", subscriber="ann")
                publisher.start()
                publisher.more(20 * BATCH)
                # The job has hardly begun.
                kill(service)
            with serving(folder, port) as service:
                until(lambda: arrived(catalog), "deliveries")
                publisher.more(20 * BATCH)
                kill(service)
            with serving(folder, port):
                publisher.more(20 * BATCH)
                publisher.end()
                until(lambda: publisher.accepted <= set(arrived(catalog)), "all deliveries")
        finally:
            publisher.end()
        found = Counter(arrived(catalog))
    assert max(found.values()) == 1
    assert publisher.accepted <= found.keys() <= publisher.accepted | publisher.unknown
    assert len(publisher.accepted) >= 60 * BATCH
