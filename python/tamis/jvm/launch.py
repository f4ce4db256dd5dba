"""Starts the JVM of an embedded Spark, as PySpark does, before PySpark is imported.

PySpark runs `spark-submit`, which writes a port and a secret to a file, and connects to that port. Here the
first half is done early, so the JVM starts while Python imports; PySpark finds the rest in its environment.
If anything fails, PySpark starts a JVM itself, and reports what is wrong.
"""

import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tamis.jvm.class_archive import ClassArchive
from tamis.jvm.options import JAVA_OPTIONS, has_own_java_options, is_local, spark_config
from tamis.jvm.signals import ignore_interrupts
from tamis.settings import Settings

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

STOP_SECONDS = 10.0
"""Seconds that the JVM may take to end, before it is killed."""


class Jvm:
    """A JVM that starts or runs. It ends when its standard input is closed, as by the end of this process."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", folder: Path, archive: ClassArchive | None
    ) -> None:
        self._process = process
        self._info = folder / "connection"
        self.archive = archive

    @contextmanager
    def connection(self) -> Iterator[None]:
        """Wait for the JVM; in the block, PySpark connects to it."""
        # The folder is gone if PySpark is connected already.
        while self._info.parent.exists() and not self._info.exists() and self._process.poll() is None:
            time.sleep(0.02)
        if not self._info.exists():
            yield
            return
        content = self._info.read_bytes()
        # Deleted now: a killed job leaves no secret behind.
        shutil.rmtree(self._info.parent, ignore_errors=True)
        # A port of four bytes, the length of the secret, the secret.
        port, length = struct.unpack("!ii", content[:8])
        secret = content[8 : 8 + length].decode()
        os.environ |= {PORT: str(port), SECRET: secret}
        try:
            yield
        finally:
            del os.environ[PORT], os.environ[SECRET]

    def close(self) -> None:
        """End the JVM."""
        if self.archive is not None:
            self.archive.close()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._info.parent, ignore_errors=True)


@contextmanager
def embedded_jvm(settings: Settings) -> Iterator[Jvm | None]:
    """The JVM of a job; None if Spark is not embedded, or another process has started it."""
    jvm = _launch(settings)
    try:
        yield jvm
    finally:
        if jvm is not None:
            jvm.close()


def _launch(settings: Settings) -> Jvm | None:
    home = _spark_home()
    if not is_local(settings) or home is None or PORT in os.environ:
        return None
    config = spark_config(settings)
    archive = None
    if not has_own_java_options(config):
        archive = ClassArchive.of(home)
        config[JAVA_OPTIONS] = " ".join([config[JAVA_OPTIONS], *(archive.java_options if archive else ())])
    folder = Path(tempfile.mkdtemp(prefix="tamis-jvm-"))
    config["spark.master"] = settings.spark.master
    command = [str(home / "bin" / "spark-submit")]
    command += [part for name, value in config.items() for part in ("--conf", f"{name}={value}")]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env=_environment(folder / "connection"),
            preexec_fn=ignore_interrupts,
        )
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Jvm(process, folder, archive)


def _environment(info: Path) -> Mapping[str, str]:
    return {
        **os.environ,
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        # For the JVM that assembles the command line of the other one.
        "SPARK_LAUNCHER_OPTS": os.environ.get(
            "SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        ),
    }


def _spark_home() -> Path | None:
    """The folder of Spark: as `SPARK_HOME` says, else inside PySpark."""
    named = os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return None
    home = Path(found.submodule_search_locations[0])
    return home if (home / "bin" / "spark-submit").exists() else None
