"""Commands of tamis in processes of their own, which end with the process that started them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOG = "log"
"""The file of the folder that has what the command says."""


def child_command(*arguments: str) -> list[str]:
    """A command of tamis, to be started as a child of this process."""
    return [sys.executable, "-m", "tamis.cli.child", str(os.getpid()), *arguments]


@contextmanager
def launched(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A command with the settings of a folder, in a process group of its own, which is gone afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAMIS_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = child_command(*arguments, "--config", str(folder / "tamis.toml"))
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
