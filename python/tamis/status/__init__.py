"""The status of a job as typed values; the file, the terminal and Prometheus only render them.

    value.py     the values: Status, SourceStatus, LinkReport, BatchReport, Failure
    board.py     where a running job reports events, and the current status
    file.py      status.json, for other processes
    metrics.py   Prometheus
`cli/live.py` renders a status in a terminal.
"""

from tamis.status.board import StatusBoard
from tamis.status.file import StatusError, parse_status, read_status, status_json
from tamis.status.value import BatchReport, Failure, JobState, LinkReport, SourceState, SourceStatus, Status

__all__ = [
    "BatchReport",
    "Failure",
    "JobState",
    "LinkReport",
    "SourceState",
    "SourceStatus",
    "Status",
    "StatusBoard",
    "StatusError",
    "parse_status",
    "read_status",
    "status_json",
]
