"""`python -m tamis.bench suite benches`: what `make bench` runs."""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from tamis.bench import ROUNDS
from tamis.bench.report import plot_growth, print_table, write_page
from tamis.bench.suite import Outcome, record, run_suite


def main() -> int:
    """0 if every answer was right; bars that were missed are shown, and fail with `--strict` only."""
    parser = argparse.ArgumentParser(prog="python -m tamis.bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("suite", help="every workload of a folder")
    command.add_argument("folder", type=Path)
    command.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a workload; writes nothing down"
    )
    command.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"{ROUNDS} unless given")
    command.add_argument("--strict", action="store_true", help="fail where a bar is missed")
    options = parser.parse_args()

    console = Console(width=None if sys.stdout.isatty() else 140)
    outcomes: list[Outcome] = []
    for outcome in run_suite(options.folder, only=options.only, rounds=options.rounds):
        outcomes.append(outcome)
        if outcome.checks or outcome.problems or outcome.skipped:
            print_table([outcome], console)
    if not options.only:
        _write_down(options.folder, outcomes, console)
    wrong = any(outcome.problems for outcome in outcomes)
    missed = any(not check.met for outcome in outcomes for check in outcome.checks)
    return 1 if wrong or (missed and options.strict) else 0


def _write_down(folder: Path, outcomes: list[Outcome], console: Console) -> None:
    print_table(outcomes, console)
    written = record(folder / "record", outcomes)
    docs = folder.parent / "docs"
    for outcome in outcomes:
        if outcome.workload == "growth" and outcome.figures:
            console.print(f"plotted {plot_growth(docs / 'img', outcome.figures)}")
    write_page(docs / "performance.md", outcomes, written.stem)
    console.print(f"recorded {written}")


if __name__ == "__main__":
    sys.exit(main())
