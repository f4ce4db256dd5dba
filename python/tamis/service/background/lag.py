"""How far the job has read a source, from its status file."""

from pathlib import Path

from tamis.status import StatusError, read_status


def read_until(state: Path, name: str) -> float:
    """The time, in seconds since 1970, up to which all new files were read; 0 if that is not known.

    A source in the state "waiting" had nothing new since its last batch.
    """
    try:
        status = read_status(state)
    except StatusError:
        return 0.0
    for source in status.sources:
        if source.name == name and source.state == "waiting" and source.last is not None:
            return source.last.started.timestamp()
    return 0.0
