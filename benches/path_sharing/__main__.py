"""`python -m benches.path_sharing`: runs and plots the experiments, and updates docs/performance.md.

The figures go to `benches/record/path_sharing.json`; `--plot` makes the page and the plots of those alone.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benches.path_sharing.experiments import Experiment, experiments
from benches.path_sharing.page import write_page
from benches.path_sharing.plots import plot
from benches.transform import TransformWorkload
from tamis.cli.progress import bar

BENCHES = Path(__file__).resolve().parent.parent
WORKLOADS = BENCHES / "workloads"
RECORD = BENCHES / "record" / "path_sharing.json"
DOCS = BENCHES.parent / "docs"
ROUNDS = 3
BUILD = ("cargo", "build", "--quiet", "--release", "--example", "path_sharing", "--message-format=json")


def main() -> int:
    """Everything, or what follows from what is recorded."""
    parser = argparse.ArgumentParser(prog="python -m benches.path_sharing", description=__doc__)
    parser.add_argument("--plot", action="store_true", help="run nothing, plot what is recorded")
    if not parser.parse_args().plot:
        run()
    figures = json.loads(RECORD.read_text("utf-8"))
    plot(DOCS / "img", figures)
    write_page(DOCS / "performance.md", figures)
    return 0


def run() -> None:
    """Run all experiments and write the record."""
    program = _build()
    wanted = list(experiments())
    figures: dict[str, dict[int, Any]] = {}
    with bar("path sharing") as progress:
        for done, experiment in enumerate(wanted, start=1):
            figures.setdefault(experiment.figure, {})[experiment.at] = _run(program, experiment)
            progress(done, len(wanted))
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def _build() -> str:
    built = subprocess.run(BUILD, cwd=BENCHES.parent, stdout=subprocess.PIPE, text=True, check=True)
    messages: list[Mapping[str, Any]] = [json.loads(line) for line in built.stdout.splitlines()]
    return next(str(message["executable"]) for message in messages if message.get("executable"))


def _run(program: str, experiment: Experiment) -> Any:
    workload = TransformWorkload.of(experiment.workload, WORKLOADS)
    documents, transformations = workload.generate()
    with tempfile.TemporaryDirectory() as directory:
        folder, queries = Path(directory) / "documents", Path(directory) / "queries"
        folder.mkdir()
        for number, document in enumerate(documents):
            (folder / f"{number:03d}.xml").write_bytes(document)
        queries.write_text("\n".join(transformations) + "\n", "utf-8")
        dtd = WORKLOADS / experiment.workload["dtd"]
        command = [program, str(dtd), str(folder), str(queries), str(ROUNDS), *experiment.settings]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
