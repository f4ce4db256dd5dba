"""The fork server: its processes are what Spark asked for, and end when Spark ends them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.jvm import fork_server
from tamis.jvm.fork_server import PYTHON
from tamis.settings import Settings
from tests.helpers.waiting import until

REPORT = """
import os, sys
print(os.getppid(), os.getcwd(), os.environ.get("HELLO"), sys.argv[1:], sys.stdin.read(), flush=True)
import pyspark.worker
sys.exit(int(sys.argv[1]))
"""

WAIT = """
import os, time
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "report.py").write_text(REPORT)
    (tmp_path / "wait.py").write_text(WAIT)
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[fork_server.ForkServer]:
    monkeypatch.delenv(PYTHON, raising=False)
    with fork_server.fork_server(Settings()) as started:
        assert started is not None
        yield started


def spark_python(modules: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """What Spark runs."""
    return subprocess.Popen(
        [os.environ[PYTHON], *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=modules,
        env={**os.environ, "PYTHONPATH": str(modules), **environment},
    )


def test_a_process_has_the_arguments_environment_folder_and_streams(
    server: fork_server.ForkServer, modules: Path
) -> None:
    # Asked for before the server runs: it waits.
    process = spark_python(modules, "-m", "report", "7", "b", HELLO="world")
    server.start()
    output, _ = process.communicate("input")
    parent, rest = output.split(" ", 1)
    assert rest.strip() == f"{modules} world ['7', 'b'] input"
    assert process.returncode == 7
    assert int(parent) not in (process.pid, os.getpid())


def test_a_process_ends_with_the_one_that_spark_ends(server: fork_server.ForkServer, modules: Path) -> None:
    server.start()
    process = spark_python(modules, "-m", "wait")
    assert process.stdout is not None
    forked = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not exists(forked), "the end of the process")


def test_other_than_modules_run_in_python_itself(server: fork_server.ForkServer, modules: Path) -> None:
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    output, _ = spark_python(modules, "-c", program).communicate()
    assert output.strip() == "{}.{}".format(*sys.version_info)


def test_without_a_server_it_is_python(server: fork_server.ForkServer, modules: Path) -> None:
    command = os.environ[PYTHON]
    Path(command).with_name("socket").unlink()
    process = spark_python(modules, "-m", "report", "0")
    output, _ = process.communicate("")
    assert output.startswith(f"{os.getpid()} ")
    assert process.returncode == 0


def test_another_python_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON, "/usr/bin/another-python")
    with fork_server.fork_server(Settings()) as server:
        assert server is None
        assert os.environ[PYTHON] == "/usr/bin/another-python"


def exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
