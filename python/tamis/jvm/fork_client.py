"""What Spark runs in place of Python: asks the fork server for a process, and waits for its end.

    python -IS fork_client.py SOCKET -m pyspark.daemon pyspark.worker

The process gets the arguments, the environment, the folder and the standard streams of this one. If Spark
ends this one, the server ends the process. If no server answers, or Spark asks for something else than a
module, this one becomes the Python that Spark asked for.
"""

import json
import os
import socket
import struct
import sys
from typing import NoReturn

INTEGER = struct.Struct("i")
"""The length of a request, an exit code."""


def main() -> int:
    """The exit code of the process."""
    path, *arguments = sys.argv[1:]
    if arguments[:1] != ["-m"]:
        # Spark asks for the version of Python.
        _become_python(arguments)
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": str(os.getcwd())}  # noqa: PTH109
    data = json.dumps(request).encode()
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(path)
        socket.send_fds(server, [INTEGER.pack(len(data))], [0, 1, 2])
        server.sendall(data)
    except OSError:
        _become_python(arguments)
    # Spark must see the end of the streams when the process closes them.
    os.close(0)
    os.close(1)
    answer = server.recv(INTEGER.size, socket.MSG_WAITALL)
    return int(INTEGER.unpack(answer)[0]) if len(answer) == INTEGER.size else 1


def _become_python(arguments: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    sys.exit(main())
