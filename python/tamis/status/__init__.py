"""The status of a job, as a typed value first: the file, the terminal and Prometheus only render it."""

from tamis.status.board import StatusBoard
from tamis.status.file import StatusError, parse_status, read_status, status_json
from tamis.status.value import BatchReport, Failure, JobState, SourceState, SourceStatus, Status

__all__ = [
    "BatchReport",
    "Failure",
    "JobState",
    "SourceState",
    "SourceStatus",
    "Status",
    "StatusBoard",
    "StatusError",
    "parse_status",
    "read_status",
    "status_json",
]
