"""`status.json` in a job's state directory, for other processes."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tamis.errors import TamisError
from tamis.status.value import BatchReport, Durations, Failure, LinkReport, SourceStatus, Status, Totals
from tamis.storage.files import draft_path

NAME = "status.json"

STALE_SECONDS = 60.0
"""A running job writes its status every second. If it is older than this, the job cannot write it."""


class StatusError(TamisError):
    """A status that cannot be read."""


def status_json(status: Status, indent: int | None = None) -> str:
    """A status as JSON, with times in ISO 8601."""
    return json.dumps(asdict(status), indent=indent, ensure_ascii=False, default=datetime.isoformat)


def write_status(status: Status, directory: Path) -> None:
    """Readers find the old file or the new one. Not synced: it says nothing once the machine is down."""
    draft = draft_path(directory)
    try:
        draft.write_text(status_json(status), encoding="utf-8")
        draft.rename(directory / NAME)
    finally:
        draft.unlink(missing_ok=True)


def read_status(directory: Path) -> Status:
    """The status of a job by its state directory; `died` if its process is gone without having stopped."""
    path = directory / NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        reason = f"no job has run with its state in {directory}; name the directory with --state"
        raise StatusError("no-job", reason) from None
    try:
        status = parse_status(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        reason = (
            f"{path} is not a status of this version of tamis ({error}); the next run of the job renews it"
        )
        raise StatusError("bad-status", reason) from error
    if not status.alive:
        return status
    if process_started(status.pid) == status.pid_started:
        return _with_staleness(status, path)
    sources = tuple(replace(source, state="stopped") for source in status.sources)
    return replace(status, state="died", sources=sources)


def _with_staleness(status: Status, path: Path) -> Status:
    """The status, with a failure if its file is stale: then the real state of the job is unknown."""
    age = time.time() - path.stat().st_mtime
    if status.state != "running" or age < STALE_SECONDS:
        return status
    reason = f"the job last wrote its status {age:.0f} s ago: is there room in {path.parent}?"
    return replace(status, failure=Failure("status-stale", reason, status.now))


def process_started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may contain anything; the third field follows it.
    fields = stat[stat.rindex(")") + 2 :].split()
    # A zombie has ended.
    return None if fields[0] in "ZX" else int(fields[19])


def parse_status(value: Mapping[str, Any]) -> Status:
    """Parse a status."""
    return Status(
        **{
            **value,
            "started": datetime.fromisoformat(value["started"]),
            "now": datetime.fromisoformat(value["now"]),
            "failure": _failure(value["failure"]),
            "sources": tuple(map(_source, value["sources"])),
            "links": tuple(LinkReport(**one) for one in value.get("links", ())),
        }
    )


def _source(value: Mapping[str, Any]) -> SourceStatus:
    durations = value["durations"]
    return SourceStatus(
        **{
            **value,
            "minute": tuple(value["minute"]),
            "last": _report(value["last"]),
            "totals": Totals(**value["totals"]),
            "durations": Durations(tuple(durations["counts"]), durations["seconds"]),
            "failure": _failure(value["failure"]),
        }
    )


def _report(value: Mapping[str, Any] | None) -> BatchReport | None:
    if value is None:
        return None
    return BatchReport(**{**value, "started": datetime.fromisoformat(value["started"])})


def _failure(value: Mapping[str, Any] | None) -> Failure | None:
    if value is None:
        return None
    return Failure(value["code"], value["reason"], datetime.fromisoformat(value["when"]))
