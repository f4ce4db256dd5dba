"""Java libraries from Maven Central: Spark's Kafka connector, and a Kafka broker to try and test with.

Maven resolves them once, into a cache folder named by a hash of the POM.
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
    """Libraries that cannot be downloaded."""


def connector_jars() -> list[Path]:
    """Spark's Kafka connector, for its setting `spark.jars`."""
    return _cached("spark")


def broker_jars() -> list[Path]:
    """A Kafka broker."""
    return _cached("broker")


def _cached(name: str) -> list[Path]:
    pom = _POMS / f"{name}.xml"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    folder = _cache() / f"{name}-{digest}"
    if not folder.is_dir():
        # One process at a time: all of them share Maven's own cache.
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
    """Download the dependencies of a POM. The folder appears complete or not at all."""
    maven = program("mvn", "maven")
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        # Maven writes beside the POM it is given.
        copy = shutil.copy(pom, Path(work, "pom.xml"))
        command = [maven, "-q", "-B", "-f", copy, "dependency:copy-dependencies"]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={work}/jars"]
        run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if run.returncode:
            output = (run.stdout + run.stderr).strip()
            reason = f"Maven could not download the dependencies of {pom.name}:\n{output}"
            raise JarsError("no-jars", reason)
        Path(work, "jars").rename(folder)


def program(name: str, package: str) -> str:
    """The path of a program; `JarsError` names the package to install if it is missing."""
    path = shutil.which(name)
    if path is None:
        reason = f"`{name}` is not on the PATH: install it (Debian: `apt-get install {package}`)"
        raise JarsError("no-program", reason)
    return path
