"""`tamis status`: show the status of the job."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from tamis.cli.live import live, render, tab_rows
from tamis.cli.remote import add_url, client_of, url_of
from tamis.cli.tables import print_table
from tamis.settings import load_settings
from tamis.status import Status, StatusError, parse_status, read_status, status_json

POLL = 0.25
"""Seconds between two reads."""

START_SECONDS = 5.0
"""How long `--watch` waits for a job to start."""

RUNS, RUNS_NOT, FAILS = 0, 3, 4
"""Exit codes."""

ReadStatus = Callable[[], Status]
"""Reads the current status of a job."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which job, and the output format."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="state directory of the job, or TAMIS_STATE"
    )
    add_url(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--watch", action="store_true", help="update until the job ends")
    parser.set_defaults(run=run)
    parser.epilog = f"Exit code: {RUNS} running, {RUNS_NOT} not running, {FAILS} running and a source fails."


def run(options: argparse.Namespace) -> int:
    """`tamis status`."""
    with _status_reader(options) as current_status:
        try:
            status = _wait_for_job(current_status) if options.watch else current_status()
            if not options.watch:
                _print(status, as_json=options.json)
            elif options.json:
                status = _print_lines(current_status, status)
            else:
                status = _watch(current_status, status)
        except StatusError as error:
            print(f"tamis: {error}", file=sys.stderr)
            return RUNS_NOT
    if not status.alive:
        return RUNS_NOT
    return FAILS if status.failing else RUNS


def _print(status: Status, *, as_json: bool) -> None:
    if as_json:
        print(status_json(status, indent=2))
    elif sys.stdout.isatty():
        Console().print(render(status))
    else:
        print_table((), tab_rows(status))


@contextmanager
def _status_reader(options: argparse.Namespace) -> Iterator[ReadStatus]:
    """A function that reads the status of the service's job if a service is named, else of the local job."""
    if options.config is not None or options.state is not None or url_of(options) is None:
        state = load_settings(options.config, {"state": options.state}).state
        yield lambda: read_status(state)
    else:
        with client_of(options) as client:
            yield lambda: _status_of(client.status()["job"])


def _status_of(job: dict[str, Any] | None) -> Status:
    """The status of a service's job."""
    if job is None:
        raise StatusError("no-job", "the job of the service has not run yet")
    # Process id and error details are not part of the service's answer.
    kept = {"job": "", "pid": 0, "pid_started": None, "failures": {}}
    return parse_status({**kept, **job})


def _wait_for_job(current_status: ReadStatus) -> Status:
    """The status of a job that runs, or starts soon: `run` needs a moment before it has a status."""
    end = time.monotonic() + START_SECONDS
    while True:
        late = time.monotonic() >= end
        try:
            status = current_status()
            if status.alive or late:
                return status
        except StatusError:
            if late:
                raise
        time.sleep(POLL)


def _watch(current_status: ReadStatus, status: Status) -> Status:
    """Show a live status until the job ends or Ctrl-C; the last one stays."""
    with suppress(KeyboardInterrupt), live(lambda: status, Console()):
        while status.alive:
            time.sleep(POLL)
            status = current_status()
    return status


def _print_lines(current_status: ReadStatus, status: Status) -> Status:
    """Print each status as a line."""
    with suppress(KeyboardInterrupt):
        print(status_json(status), flush=True)
        while status.alive:
            time.sleep(POLL)
            newest = current_status()
            if newest != status:
                status = newest
                print(status_json(status), flush=True)
    return status
