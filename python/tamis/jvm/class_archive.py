"""An archive of the classes that Spark loads (AppCDS), which halves the start of the JVM.

A JVM reads, parses and verifies some 16,000 classes of Spark at each start. With an archive it maps them.
The first job records the names of its classes (`-XX:DumpLoadedClassList`). Once it is ready, a process of
low priority writes the archive (`-Xshare:dump`), and later jobs use it (`-XX:SharedArchiveFile`).

An archive belongs to one JVM, one Spark and its jars: its name is a hash of them. It is published by an
atomic rename, so concurrent jobs may write it. The JVM checks an archive and ignores one that does not fit.
Without an archive, or if none can be written, the job only starts slower.
"""

import os
import shutil
import subprocess
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Self

from tamis.storage.files import DRAFT, draft_path, publish_draft

QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""No warnings to the user about an archive that does not fit."""

UNUSED_SECONDS = 30 * 86_400
"""Seconds after which an unused archive is removed."""

DRAFT_SECONDS = 86_400
"""Seconds after which the drafts of jobs that were killed are removed."""


class ClassArchive:
    """The archive for one JVM and one Spark: used if it exists, otherwise written by this job."""

    def __init__(self, path: Path, java: Path) -> None:
        self._path = path
        self._java = java
        self._exists = path.exists()
        self._names = draft_path(path.parent)
        self._process: subprocess.Popen[bytes] | None = None
        self._draft: Path | None = None

    @classmethod
    def of(cls, spark: Path) -> Self | None:
        """The archive for the JVM that `spark-submit` runs; None if there can be none."""
        java = _java()
        if java is None:
            return None
        folder = cache_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            archive = cls(folder / f"{_identity(java, spark)}.jsa", java)
            if archive._exists:
                os.utime(archive._path)
            else:
                # Refused here rather than by the JVM, which would not start.
                archive._names.touch()
            _remove_unused(folder)
        except OSError:
            return None
        return archive

    @property
    def java_options(self) -> tuple[str, ...]:
        """Options that make the JVM use the archive, or record the names of its classes for one."""
        if " " in str(self._path):
            return ()
        if self._exists:
            return (*QUIET, f"-XX:SharedArchiveFile={self._path}")
        return (*QUIET, f"-XX:DumpLoadedClassList={self._names}")

    @property
    def is_missing(self) -> bool:
        """Whether there is no archive yet, and `make` can write it."""
        return not self._exists and self._process is None and self._names.exists()

    def make(self, class_path: str) -> None:
        """Start to write the archive in the background; `class_path`: of the running JVM."""
        self._draft = draft_path(self._path.parent)
        # The JVM keeps appending to the list; its present content is what a start needs.
        names = draft_path(self._path.parent)
        shutil.copyfile(self._names, names)
        self._names.unlink()
        self._names = names
        command = [str(self._java), "-Xshare:dump", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xlog:disable"]
        command += [f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={self._draft}"]
        with suppress(OSError):
            self._process = subprocess.Popen(
                [*command, "-cp", class_path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=_low_priority,
            )

    def poll(self) -> None:
        """Publish the archive once it is written."""
        if self._process is not None and self._draft is not None and self._process.poll() == 0:
            with suppress(OSError):
                publish_draft(self._draft, self._path)
            self._draft = None

    @property
    def is_done(self) -> bool:
        """Whether the process that writes it has ended."""
        return self._process is not None and self._process.poll() is not None

    def close(self) -> None:
        """Discard an unfinished archive; another job will write it."""
        if self._process is not None and not self.is_done:
            self._process.kill()
            self._process.wait()
        self.poll()
        for path in (self._names, self._draft):
            if path is not None:
                path.unlink(missing_ok=True)


def cache_folder() -> Path:
    """The folder of archives."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tamis" / "jvm"


def _java() -> Path | None:
    """The program that `spark-submit` runs."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None or not Path(found).exists():
        return None
    return Path(found).resolve()


def _identity(java: Path, spark: Path) -> str:
    """A hash of the JVM and of Spark's jars."""
    files = [java, *java.parent.parent.glob("lib/server/*"), *sorted((spark / "jars").iterdir())]
    named = [f"{file} {(known := file.stat()).st_size} {known.st_mtime_ns}" for file in files]
    return blake2b("\n".join(named).encode(), digest_size=12).hexdigest()


def _low_priority() -> None:
    os.nice(10)


def _remove_unused(folder: Path) -> None:
    now = time.time()
    for file in folder.iterdir():
        limit = DRAFT_SECONDS if file.name.startswith(DRAFT) else UNUSED_SECONDS
        if file.stat().st_mtime < now - limit:
            file.unlink(missing_ok=True)
