"""`tamis run`: run the job until a signal."""

import argparse
import logging
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from tamis.cli.live import display
from tamis.settings import ENVIRONMENT, load_settings
from tamis.status import StatusBoard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for each environment variable."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    for variable, name in ENVIRONMENT.items():
        if name.startswith("serve."):
            continue
        flag = f"--{name.replace('.', '-').replace('_', '-')}"
        parser.add_argument(flag, dest=name, metavar="VALUE", help=f"or {variable}")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the job. The first signal lets running batches finish; the second ends it at once."""
    # Slow to import; other commands do not need Spark.
    from tamis.spark.job import Job
    from tamis.status.metrics import serve_metrics

    flags = {name: getattr(options, name, None) for name in ENVIRONMENT.values()}
    settings = load_settings(options.config, flags)
    board = StatusBoard(settings.state, [source.name for source in settings.sources])
    stop = _Stop()
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop.by_signal)
    with ExitStack() as stack:
        if settings.metrics.port is not None:
            stack.enter_context(serve_metrics(board, settings.metrics.host, settings.metrics.port))
        stack.enter_context(display(board))
        # Now: a live display takes standard error over, and keeps what is logged above itself.
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        # The job tells it, in one line.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        Job(settings, board).run(until=stop)
    return 0


class _Stop:
    """Whether a signal came."""

    def __init__(self) -> None:
        self._signalled = False

    def by_signal(self, kind: int, frame: FrameType | None) -> None:
        """The first one; a second one takes its usual way."""
        if self._signalled:
            signal.signal(kind, signal.SIG_DFL)
            signal.raise_signal(kind)
        self._signalled = True

    def __call__(self) -> bool:
        return self._signalled
