"""What a job says it has read."""

from pathlib import Path

from tamis.status import StatusError, read_status


def read_until(state: Path, name: str) -> float:
    """Up to when all was read that entered a source, in seconds since 1970; 0 while that is not known.

    A source that waits has been asked, and had nothing new since its last batch.
    """
    try:
        status = read_status(state)
    except StatusError:
        return 0.0
    for source in status.sources:
        if source.name == name and source.state == "waiting" and source.last is not None:
            return source.last.started.timestamp()
    return 0.0
