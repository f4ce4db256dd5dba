"""A Kafka broker on the loopback, to try and to test with: `python -m tamis.demo.kafka_broker`."""

import argparse
import base64
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tamis.sources.kafka_jars import JarsError, broker_jars, program

START_S = 60
"""Seconds that a broker may take to start."""

STOP_S = 30

_SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENTS://127.0.0.1:{port}
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENTS
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""

# An ApiVersions request (18), version 0, correlation 1, no client id: every broker answers it.
_HELLO = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class Broker:
    """A broker with its data in a folder. It can be restarted at the same address."""

    def __init__(self, folder: Path, *, port: int | None = None, partitions: int = 1) -> None:
        """A folder that a broker has used before keeps its port.

        `partitions`: of topics that are created by writing to them.
        """
        self._process: subprocess.Popen[bytes] | None = None
        self._classpath = os.pathsep.join(str(jar) for jar in broker_jars())
        self._java = program("java", "default-jre-headless")
        self._config = folder / "server.properties"
        self._log = folder / "broker.log"
        folder.mkdir(parents=True, exist_ok=True)
        if self._config.exists():
            self._port = int(re.findall(r"CLIENTS://127.0.0.1:(\d+)", self._config.read_text())[0])
        else:
            self._port = port or _free_port()
            settings = _SETTINGS.format(
                port=self._port, controller=_free_port(), folder=folder.absolute(), partitions=partitions
            )
            self._config.write_text(settings)
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            options = ["format", "--standalone", "-t", cluster, "-c", str(self._config)]
            with self._log.open("ab") as log:
                formatting = self._run("kafka.tools.StorageTool", options, log)
                if formatting.wait():
                    raise self._error("the broker's folder could not be prepared")

    @property
    def servers(self) -> str:
        """The setting `bootstrap.servers` of clients."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = self._run("kafka.Kafka", [str(self._config)], log)
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None:
                raise self._error("the broker ended")
            if time.monotonic() > deadline:
                self.stop()
                raise self._error(f"the broker did not answer within {START_S} s")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the broker. Its data stays."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def wait(self) -> None:
        """Wait until the broker ends."""
        if self._process is not None:
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, main: str, arguments: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = [self._java, "-Xmx256m", "-XX:+UseSerialGC", "-cp", self._classpath, main, *arguments]
        # In its own session: Ctrl-C goes to us only, and we stop it cleanly.
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                connection.sendall(_HELLO)
                return len(connection.recv(4)) > 0
        except OSError:
            return False

    def _error(self, reason: str) -> JarsError:
        last = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        return JarsError("no-broker", f"{reason}; the end of {self._log}:\n{last}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a broker until a signal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that keeps its data (a temporary one)")
    parser.add_argument("--port", type=int, default=9092)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            with Broker(options.data or Path(temporary), port=options.port) as broker:
                print(f"kafka.bootstrap.servers = {broker.servers}", flush=True)
                broker.wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
