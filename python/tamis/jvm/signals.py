"""How the processes of an embedded Spark treat signals."""

import signal


def ignore_interrupts() -> None:
    """For a new process: the job handles Ctrl-C, and ends its processes after the running batch."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
