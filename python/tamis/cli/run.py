"""`tamis run`: run the job until a signal."""

import argparse
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from tamis.errors import JobError
from tamis.extras import require
from tamis.jvm.fork_server import fork_server
from tamis.jvm.launch import embedded_jvm
from tamis.settings import ENVIRONMENT, load_settings
from tamis.status import StatusBoard
from tamis.storage.files import Lock, set_umask


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
    require("spark")
    flags = {name: getattr(options, name, None) for name in ENVIRONMENT.values()}
    settings = load_settings(options.config, flags)
    set_umask(int(settings.umask, 8))
    stop = _Stop()
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop.by_signal)
    with _state_lock(settings.state), ExitStack() as stack:
        board = StatusBoard(settings.state, [source.name for source in settings.inputs])
        # Before the slow imports: `tamis status` must not show the last run.
        board.state("starting")
        server = stack.enter_context(fork_server(settings))
        # Before the imports too: the JVM starts meanwhile.
        jvm = stack.enter_context(embedded_jvm(settings))
        from tamis.cli.live import announce_start, display

        stack.enter_context(display(board, announce_start(settings, board)))
        from tamis.spark.session import early_session

        session = stack.enter_context(early_session(settings, jvm))
        from tamis.spark.job import Job
        from tamis.spark.worker.without_pandas import without_pandas
        from tamis.status.metrics import serve_metrics

        without_pandas()
        if server is not None:
            # After the imports, which the JVM waits for: it imports the same while the JVM starts Spark.
            server.start()

        if settings.metrics.port is not None:
            stack.enter_context(serve_metrics(board, settings.metrics.host, settings.metrics.port))
        # After the display: it replaces standard error, and prints log lines above itself.
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        # Off: the job logs such errors itself, in one line.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        Job(settings, board, session, None if jvm is None else jvm.archive).run(until=stop)
    return 0


@contextmanager
def _state_lock(state: Path) -> Iterator[None]:
    """Allow one job per state directory. The JVM of a killed job may hold the lock for a moment."""
    lock = Lock(state / "job.lock")
    if not lock.try_acquire():
        reason = f"another job is running with the state directory {state}; stop it first"
        raise JobError("job-running", reason)
    try:
        yield
    finally:
        lock.release()


class _Stop:
    """A callable that is true once a signal has arrived."""

    def __init__(self) -> None:
        self._signalled = False

    def by_signal(self, kind: int, frame: FrameType | None) -> None:
        """Handle the first signal; restore the default handler for a second one."""
        if self._signalled:
            signal.signal(kind, signal.SIG_DFL)
            signal.raise_signal(kind)
        self._signalled = True

    def __call__(self) -> bool:
        return self._signalled
