"""A command that stops when the process is gone which started it: `python -m tamis.cli.child PID …`."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def command(*arguments: str) -> list[str]:
    """A command of tamis, to be started as a child of this process."""
    return [sys.executable, "-m", __name__, str(os.getpid()), *arguments]


def main() -> int:
    """Run a command as the child of a process."""
    parent, *arguments = sys.argv[1:]
    # Whoever is killed must not leave a job behind that nobody looks after.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return 1
    # Not before: whoever only starts a child need not load all that a command does.
    from tamis import cli

    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
