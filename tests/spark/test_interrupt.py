"""Ctrl-C ends a job as SIGTERM does: batches finish, the exit code is 0, the status is `stopped`."""

import os
import pty
import signal
import sys
import threading
from pathlib import Path

from tamis.catalog import Catalog
from tamis.model.subscription import NewSubscription
from tests.helpers.jobs import TAMIS, Folder, running, until_running
from tests.helpers.waiting import until


def folder_with_a_message(path: Path) -> Folder:
    folder = Folder(path)
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "//a"))
    folder.publish("a.xml", b"<a/>")
    return folder


def check_stopped(folder: Folder, output: str) -> None:
    status = folder.status()
    assert status is not None
    assert (status.state, len(folder.deliveries())) == ("stopped", 1)
    assert "Traceback" not in output
    assert "KeyboardInterrupt" not in output


def check_private(folder: Folder) -> None:
    """All that the job wrote is for its user only."""
    names = ("state", "outbox", "inbox.done", "inbox.ledger", "tamis.db")
    own = [path for name in names for path in tree(folder.path / name)]
    assert len(own) > 20
    assert {path: oct(path.stat().st_mode) for path in own if path.stat().st_mode & 0o077} == {}


def tree(path: Path) -> list[Path]:
    # A message that is moved keeps the permissions that its publisher gave it.
    return [one for one in (path, *path.rglob("*")) if one.exists() and one.name != "a.xml"]


def test_sigint(tmp_path: Path) -> None:
    folder = folder_with_a_message(tmp_path)
    with running(folder) as job:
        until_running(job)
        until(folder.deliveries, "a delivery")
        job.process.send_signal(signal.SIGINT)
        assert job.process.wait(timeout=120) == 0
    check_stopped(folder, folder.log.read_text())
    check_private(folder)


def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    """The terminal sends the signal to the whole group: the JVM and the Python workers get it too."""
    folder = folder_with_a_message(tmp_path)
    command = [*TAMIS, "run", "--config", str(folder.path / "tamis.toml")]
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update({"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
        os.execv(command[0], command)
    output: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(terminal, 4096):
                output.append(data)
        except OSError:
            # The other end is closed.
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        until(folder.deliveries, "a delivery")
        os.write(terminal, b"\x03")
    except BaseException:
        os.killpg(process, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(process, 0)
        reader.join()
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    check_stopped(folder, b"".join(output).decode(errors="replace"))
