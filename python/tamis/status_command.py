"""`tamis status`: how is the job doing?"""

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from tamis.live import live, render
from tamis.settings import load_settings
from tamis.status import Status, StatusError, read_status, status_json

POLL = 0.25
"""Seconds between two looks at the file."""

RUNS, RUNS_NOT, FAILS = 0, 3, 4
"""Exit codes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the job is, and how it is shown."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings; tamis.toml if it is there")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the job's, or TAMIS_STATE")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--watch", action="store_true", help="go on until the job ends")
    parser.set_defaults(run=run)
    parser.epilog = f"Exit code: {RUNS} it runs, {RUNS_NOT} it does not, {FAILS} it runs and a source fails."


def run(options: argparse.Namespace) -> int:
    """`tamis status`."""
    state = load_settings(options.config, {"state": options.state}).state
    try:
        status = read_status(state)
        if not options.watch:
            print(status_json(status, indent=2)) if options.json else Console().print(render(status))
        elif options.json:
            status = _print_lines(state, status)
        else:
            status = _watch(state, status)
    except StatusError as error:
        print(f"tamis: {error}", file=sys.stderr)
        return RUNS_NOT
    if not status.alive:
        return RUNS_NOT
    return FAILS if status.failing else RUNS


def _watch(state: Path, status: Status) -> Status:
    """Show the status as it changes; the last one, when the job ends or at Ctrl-C."""
    with suppress(KeyboardInterrupt), live(lambda: status, Console()):
        while status.alive:
            time.sleep(POLL)
            status = read_status(state)
    return status


def _print_lines(state: Path, status: Status) -> Status:
    """Print each status as a line."""
    with suppress(KeyboardInterrupt):
        print(status_json(status), flush=True)
        while status.alive:
            time.sleep(POLL)
            newest = read_status(state)
            if newest != status:
                status = newest
                print(status_json(status), flush=True)
    return status
