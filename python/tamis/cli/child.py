"""A command that stops when the process is gone which started it: `python -m tamis.cli.child PID …`."""

import ctypes
import os
import signal
import sys

from tamis.cli.commands import main as cli_main

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run a command as the child of a process."""
    parent, *arguments = sys.argv[1:]
    # Whoever is killed must not leave a job behind that nobody looks after.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return 1
    return cli_main(arguments)


if __name__ == "__main__":
    sys.exit(main())
