"""Real servers and disks for tests: each is started by the tests that need it, and stopped afterwards."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

POSTGRES_HELP = "these tests need PostgreSQL's server: make programs (or put `initdb` on PATH)"


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _postgres_programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    found = _find_postgres()
    if found is None:
        pytest.fail(POSTGRES_HELP)
    return found


def _find_postgres() -> Path | None:
    """The newest version: Debian has a folder for the programs of each version; otherwise, from PATH."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = sorted(versions, key=lambda path: float(path.parent.parent.name))
    if newest:
        return newest[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).resolve().parent


class Postgres:
    """A PostgreSQL server of the tests; a database for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._programs = _postgres_programs()
        # PostgreSQL refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None
        self.port = free_port()
        self._databases = 0
        if self._user is not None:
            shutil.chown(folder, self._user)
        options = ["--auth=trust", "--username=tamis", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        self._run("initdb", f"--pgdata={self._data}", *options)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self._folder,
            "fsync": "off",
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        wait = ("--wait", "--timeout=60")
        data, log = f"--pgdata={self._data}", f"--log={self._folder}/log"
        self._run("pg_ctl", "start", *wait, data, log, f"--options={options}")

    def stop(self) -> None:
        """Kill the server: its clients lose their connections."""
        self._run("pg_ctl", "stop", "--wait", "--mode=immediate", f"--pgdata={self._data}")

    def new_database(self) -> str:
        """The URL of an empty database."""
        self._databases += 1
        name = f"catalog{self._databases}"
        server = ["--host=127.0.0.1", f"--port={self.port}", "--username=tamis"]
        self._run("createdb", *server, name)
        return f"postgresql://tamis@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        # To files, not to a pipe: a server that keeps running would keep a pipe open.
        with (self._folder / "commands").open("ab") as output:
            done = subprocess.run(
                command, user=self._user, stdout=output, stderr=output, cwd="/", check=False
            )
        if done.returncode:
            logged = "".join(path.read_text() for path in sorted(self._folder.glob("[cl]o*")))
            pytest.fail(f"{program}: {logged[-2000:]}")


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A PostgreSQL server with its data in a folder that goes with it.

    Not in a folder of pytest's: those are closed to the user that the server runs as.
    """
    with tempfile.TemporaryDirectory(prefix="tamis-postgres-") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """A small disk, mounted at a new folder; the test is skipped if mounting is not permitted."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield place
    finally:
        # Lazily: a JVM may take a moment to be gone.
        subprocess.run(["umount", "--lazy", str(place)], check=True)
