"""Starts the fork server, which makes the Python processes of an embedded Spark.

Spark runs `PYSPARK_PYTHON` for each: here a script that asks the server (`tamis.spark.worker.fork_server`).
"""

import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.jvm import fork_client
from tamis.jvm.options import is_local
from tamis.jvm.signals import ignore_interrupts
from tamis.settings import Settings

PYTHON = "PYSPARK_PYTHON"

WAITING = 64
"""Requests that may wait until the server has imported all."""


class ForkServer:
    """The socket of the server, and its process once it is started."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process. Requests may come before: they wait."""
        number = self._listener.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tamis.spark.worker.fork_server", str(number)],
            stdin=subprocess.PIPE,
            pass_fds=[number],
            # As the JVM, whose processes it forks.
            preexec_fn=ignore_interrupts,
        )

    def close(self) -> None:
        """End the process: it ends with its standard input."""
        if self._process is not None:
            self._process.communicate()


@contextmanager
def fork_server(settings: Settings) -> Iterator[ForkServer | None]:
    """In the block, Spark gets its Python processes from the server.

    None if Spark is not embedded, or the environment names another Python.
    """
    before = os.environ.get(PYTHON)
    if not is_local(settings) or before not in (None, sys.executable):
        yield None
        return
    with (
        tempfile.TemporaryDirectory(prefix="tamis-python-") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        path = Path(folder, "socket")
        listener.bind(str(path))
        listener.listen(WAITING)
        server = ForkServer(listener)
        os.environ[PYTHON] = str(_script(Path(folder, "python"), path))
        try:
            yield server
        finally:
            server.close()
            if before is None:
                del os.environ[PYTHON]
            else:
                os.environ[PYTHON] = before


def _script(path: Path, server: Path) -> Path:
    """A program that Spark takes for Python."""
    command = shlex.join([sys.executable, "-IS", str(fork_client.__file__), str(server)])
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o700)
    return path
