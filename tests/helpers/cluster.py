"""A Spark standalone cluster on this machine: a master and two workers, each a separate process."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.helpers.servers import free_port
from tests.helpers.spark_session import environment, settings
from tests.helpers.waiting import until

HOME = Path(pyspark.__file__).parent
WORKERS = 2


@dataclass(frozen=True)
class Cluster:
    """The URL of the master, and the folders of its workers, which share nothing."""

    master: str
    folders: tuple[Path, ...]


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """Started, ready, and ended afterwards. A worker's environment names its folder as `TMPDIR`."""
    port, page = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    folders = tuple(folder / f"worker-{number}" for number in range(WORKERS))
    with ExitStack() as stack:
        command = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(running([*command, "--webui-port", str(page)], folder / "master"))
        until(lambda: _workers(page) is not None, "the master")
        for place in folders:
            command = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1"]
            command += ["--memory", "1g", "--webui-port", str(free_port()), "--work-dir", str(place), master]
            stack.enter_context(running(command, place, _own(place)))
        until(lambda: _workers(page) == WORKERS, "the workers")
        yield Cluster(master, folders)


def _own(place: Path) -> dict[str, str]:
    """The environment and folder of one worker."""
    return {"TMPDIR": str(place), "TAMIS_CACHE": str(place / "cache")}


@contextmanager
def connect_server(master: str, folder: Path) -> Iterator[str]:
    """A Spark Connect server with a Spark behind it; its address."""
    port = free_port()
    options = settings(folder) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.pyspark.python": environment()["PYSPARK_PYTHON"],
        "spark.executor.memory": "512m",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--master", master]
    for name, value in options.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with running(command, folder):
        until(lambda: _listens(port), "the Connect server")
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def running(
    command: list[str], folder: Path, more: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of Spark's, its output in a file of the folder; all of its group is ended afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, **environment(), **(more or {}), "SPARK_HOME": str(HOME)}
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(
            [HOME / "bin" / "spark-class", *command],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            # Executors and Python workers that outlived it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _workers(page: int) -> int | None:
    """How many workers the master knows; `None` before it answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=10) as answer:
            workers: int = json.load(answer)["aliveworkers"]
            return workers
    except (OSError, ValueError):
        # For a moment its page is there, and answers everything with HTML.
        return None
