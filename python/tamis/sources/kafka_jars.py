"""Java libraries from Maven Central: Spark's Kafka connector, and a Kafka broker to try and test with.

Maven resolves them once; then they lie in a cache folder, named by what was asked for.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tamis.errors import TamisError
from tamis.storage.files import Lock

_POMS = Path(__file__).with_name("poms")


class JarsError(TamisError):
    """Libraries that cannot be fetched."""


def connector_jars() -> list[Path]:
    """What Spark needs to speak with Kafka: for its setting `spark.jars`."""
    return _resolved("spark")


def broker_jars() -> list[Path]:
    """A Kafka broker."""
    return _resolved("broker")


def _resolved(name: str) -> list[Path]:
    pom = _POMS / f"{name}.xml"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    folder = _cache() / f"{name}-{wanted}"
    if not folder.is_dir():
        # One process at a time: Maven keeps what it fetches in a folder that all of them share.
        lock = Lock(_cache() / "lock")
        lock.acquire()
        try:
            if not folder.is_dir():
                _fetch(pom, folder)
        finally:
            lock.release()
    return sorted(folder.glob("*.jar"))


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tamis" / "jars"


def _fetch(pom: Path, folder: Path) -> None:
    """Fetch all that a POM asks for. The folder appears whole or not at all."""
    maven = program("mvn", "maven")
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        # Maven writes beside the POM it is given.
        copy = shutil.copy(pom, Path(work, "pom.xml"))
        command = [maven, "-q", "-B", "-f", copy, "dependency:copy-dependencies"]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={work}/jars"]
        run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if run.returncode:
            reason = f"Maven could not fetch what {pom.name} asks for:\n{(run.stdout + run.stderr).strip()}"
            raise JarsError("no-jars", reason)
        Path(work, "jars").rename(folder)


def program(name: str, package: str) -> str:
    """The path of a program; `JarsError` with what to install if it is not there."""
    path = shutil.which(name)
    if path is None:
        reason = f"`{name}` is not on the PATH: install it (Debian: `apt-get install {package}`)"
        raise JarsError("no-program", reason)
    return path
