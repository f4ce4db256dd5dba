"""Commands of tamis as child processes that end with their parent."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOG = "log"
"""The file in the folder that gets the output of the command."""


def child_command(*arguments: str) -> list[str]:
    """The command line that runs a command as a child of this process."""
    return [sys.executable, "-m", "tamis.cli.child", str(os.getpid()), *arguments]


@contextmanager
def launched(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command with the settings of a folder, in its own process group; kill it at the end."""
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
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
