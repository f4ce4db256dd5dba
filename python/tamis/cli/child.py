"""Runs a command that ends with its parent process: `python -m tamis.cli.child PID …`."""

import ctypes
import os
import signal
import sys

from tamis.cli.commands import main as cli_main

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run a command; SIGTERM when the parent dies."""
    parent, *arguments = sys.argv[1:]
    # A killed parent must not leave an orphaned job.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return 1
    return cli_main(arguments)


if __name__ == "__main__":
    sys.exit(main())
