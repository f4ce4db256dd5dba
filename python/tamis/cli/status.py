"""`tamis status`: how is the job doing?"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from tamis.cli.live import live, render
from tamis.cli.remote import add_url, client_of, url_of
from tamis.settings import load_settings
from tamis.status import Status, StatusError, parse_status, read_status, status_json

POLL = 0.25
"""Seconds between two looks."""

RUNS, RUNS_NOT, FAILS = 0, 3, 4
"""Exit codes."""

Look = Callable[[], Status]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the job is, and how it is shown."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings; tamis.toml if it is there")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the job's, or TAMIS_STATE")
    add_url(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--watch", action="store_true", help="go on until the job ends")
    parser.set_defaults(run=run)
    parser.epilog = f"Exit code: {RUNS} it runs, {RUNS_NOT} it does not, {FAILS} it runs and a source fails."


def run(options: argparse.Namespace) -> int:
    """`tamis status`."""
    with _looking(options) as look:
        try:
            status = look()
            if not options.watch:
                print(status_json(status, indent=2)) if options.json else Console().print(render(status))
            elif options.json:
                status = _print_lines(look, status)
            else:
                status = _watch(look, status)
        except StatusError as error:
            print(f"tamis: {error}", file=sys.stderr)
            return RUNS_NOT
    if not status.alive:
        return RUNS_NOT
    return FAILS if status.failing else RUNS


@contextmanager
def _looking(options: argparse.Namespace) -> Iterator[Look]:
    """At the job of a service where one is meant, else at the one whose state is on this host."""
    if options.config is not None or options.state is not None or url_of(options) is None:
        state = load_settings(options.config, {"state": options.state}).state
        yield lambda: read_status(state)
    else:
        with client_of(options) as client:
            yield lambda: _told(client.status()["job"])


def _told(job: dict[str, Any] | None) -> Status:
    """What a service tells of its job."""
    if job is None:
        raise StatusError("no-job", "the job of the service has not run yet")
    # Its process and all that failed are for who looks after the service.
    kept = {"job": "", "pid": 0, "pid_started": None, "failures": {}}
    return parse_status({**kept, **job})


def _watch(look: Look, status: Status) -> Status:
    """Show the status as it changes; the last one, when the job ends or at Ctrl-C."""
    with suppress(KeyboardInterrupt), live(lambda: status, Console()):
        while status.alive:
            time.sleep(POLL)
            status = look()
    return status


def _print_lines(look: Look, status: Status) -> Status:
    """Print each status as a line."""
    with suppress(KeyboardInterrupt):
        print(status_json(status), flush=True)
        while status.alive:
            time.sleep(POLL)
            newest = look()
            if newest != status:
                status = newest
                print(status_json(status), flush=True)
    return status
