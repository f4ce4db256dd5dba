"""`python -m benches suite`: what `make bench` runs. The other commands measure one thing by hand."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benches import commands as single
from benches.report import plot_growth, print_table, write_page
from benches.suite import Outcome, record, run_suite
from tamis import TamisError
from tamis.bench import ROUNDS

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE / "workloads"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("suite", help="every workload of benches/workloads")
    command.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a workload; writes nothing down"
    )
    command.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"{ROUNDS} unless given")
    command.add_argument("--strict", action="store_true", help="fail where a bar is missed")
    command.set_defaults(run=run)
    single.add_commands(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except TamisError as error:
        print(f"benches: {error}", file=sys.stderr)
        return 1
    return code


def run(options: argparse.Namespace) -> int:
    """0 if every answer was right; bars that were missed are shown, and fail with `--strict` only."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    outcomes: list[Outcome] = []
    for outcome in run_suite(WORKLOADS, only=options.only, rounds=options.rounds):
        outcomes.append(outcome)
        if outcome.checks or outcome.problems or outcome.skipped:
            print_table([outcome], console)
    if not options.only:
        _write_down(outcomes, console)
    wrong = any(outcome.problems for outcome in outcomes)
    missed = any(not check.met for outcome in outcomes for check in outcome.checks)
    return 1 if wrong or (missed and options.strict) else 0


def _write_down(outcomes: list[Outcome], console: Console) -> None:
    print_table(outcomes, console)
    written = record(HERE / "record", outcomes)
    docs = HERE.parent / "docs"
    for outcome in outcomes:
        if outcome.workload == "growth" and outcome.figures:
            console.print(f"plotted {plot_growth(docs / 'img', outcome.figures)}")
    write_page(docs / "performance.md", outcomes, written.stem)
    console.print(f"recorded {written}")


if __name__ == "__main__":
    sys.exit(main())
