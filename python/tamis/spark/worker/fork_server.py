"""Forks the Python processes of an embedded Spark from one process that has imported what they need.

For one job Spark starts a Python process to describe a data source, one to list its files, one to plan its
batches, and a daemon for the workers. Each would import PySpark, Arrow and tamis, about a second of processor
time. This process imports them once, while the JVM starts; a fork takes milliseconds and shares the memory.

Spark runs `tamis/jvm/fork_client.py` in place of Python. It sends a request: arguments, environment, folder
and standard streams. What is imported here starts no thread but that of jemalloc, which handles forks.
"""

import os

# Its threads would not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import gc
import importlib
import json
import runpy
import selectors
import signal
import socket
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass

from tamis.jvm.fork_client import INTEGER
from tamis.spark.worker.without_pandas import without_pandas

IMPORTED = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "tamis.spark.connectors.inbox",
    "tamis.spark.connectors.publishing",
    "tamis.spark.match_and_transform",
)
"""What the processes of a job run and unpickle."""

STREAMS = 3
"""Standard input, output and error."""


@dataclass(frozen=True)
class Request:
    """The process that Spark asked for: `python -m MODULE ARGUMENTS`."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]

    @classmethod
    def receive(cls, client: socket.socket) -> "Request":
        """Read it. A client that ends before that causes an `OSError` or a `ValueError`."""
        header, streams, _, _ = socket.recv_fds(client, INTEGER.size, STREAMS)
        try:
            [length] = INTEGER.unpack(header.ljust(INTEGER.size, b"\0"))
            return cls(**json.loads(client.recv(length, socket.MSG_WAITALL)), streams=streams)
        except (OSError, ValueError):
            _close(streams)
            raise

    def run(self) -> None:
        """Become the process."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
        _close(self.streams)
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        added = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[1:1] = [path for path in added if path and path not in sys.path]
        _, module, *sys.argv[1:] = self.arguments
        # Of modules that are imported already.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class ForkServer:
    """Serves requests until standard input ends, as it does with the job."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._ended, self._wake_up = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._clients: dict[int, socket.socket] = {}
        """The client of each running process."""

    def serve(self) -> Request | None:
        """Return the request in a process that was forked for it; in the server, None at the end."""
        for end in (self._ended, self._wake_up):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake_up.fileno())
        signal.signal(signal.SIGCHLD, _do_nothing)
        for file in (sys.stdin, self._listener, self._ended):
            self._selector.register(file, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is self._listener:
                    request = self._fork()
                    if request is not None:
                        return request
                elif key.fileobj is self._ended:
                    self._ended.recv(1024)
                    self._reap()
                else:
                    self._terminate(key.data)

    def _fork(self) -> Request | None:
        """Fork a process for the next client; its request in that process, else None."""
        client, _ = self._listener.accept()
        try:
            request = Request.receive(client)
        except (OSError, ValueError):
            client.close()
            return None
        process = os.fork()
        if process == 0:
            client.close()
            self._close()
            return request
        _close(request.streams)
        self._clients[process] = client
        self._selector.register(client, selectors.EVENT_READ, process)
        return None

    def _close(self) -> None:
        """In a forked process: drop what only the server uses."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for file in (self._listener, self._ended, self._wake_up, *self._clients.values()):
            file.close()

    def _reap(self) -> None:
        """Tell clients the exit codes of processes that have ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                process, status = ended
                client = self._clients.pop(process)
                with suppress(KeyError):
                    self._selector.unregister(client)
                with suppress(OSError):
                    client.sendall(INTEGER.pack(os.waitstatus_to_exitcode(status) & 0xFF))
                client.close()

    def _terminate(self, process: int) -> None:
        """Spark has ended the client: end the process too."""
        self._selector.unregister(self._clients[process])
        os.kill(process, signal.SIGTERM)


def main() -> None:
    """Import, then serve on an inherited socket: `python -m tamis.spark.worker.fork_server FILE_NUMBER`."""
    for module in IMPORTED:
        importlib.import_module(module)
    without_pandas()
    # Collections in forked processes do not touch, and so copy, these objects.
    gc.freeze()
    request = ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    if request is not None:
        request.run()


def _do_nothing(_signal: int, _frame: object) -> None:
    """A handler is needed for the wake-up."""


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


if __name__ == "__main__":
    main()
