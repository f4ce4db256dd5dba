"""Files that appear whole or not at all, and locks between processes.

A file is written as a *draft*, under a temporary name in its directory. Then the draft is flushed to disk
with `fsync`, renamed, and the directory is flushed. After a crash there is the old file or the new one.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DRAFT = ".draft-"
"""The prefix of unfinished files."""


PRIVATE = 0o077
"""The umask of every command: what it creates is for its user only, files 0600 and folders 0700."""


def set_umask(umask: int = PRIVATE) -> None:
    """Set the umask: limits the permissions of files that this process and its children create."""
    os.umask(umask)


def current_umask() -> int:
    """The umask of this process, to set it in others. The system only returns it when it is changed."""
    umask = os.umask(PRIVATE)
    os.umask(umask)
    return umask


def create_private(path: Path) -> None:
    """Create an empty file that only this user can access; no change if it exists."""
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A draft to write to, which gets its name `path` at the end of the block; removed if the block fails."""
    draft = draft_path(path.parent)
    try:
        yield draft
        publish_draft(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def draft_path(directory: Path) -> Path:
    """A unique temporary name in a directory."""
    return directory / f"{DRAFT}{os.urandom(16).hex()}"


def publish_draft(draft: Path, path: Path) -> None:
    """Rename a finished draft; its content and its name survive a power cut."""
    fsync(draft)
    draft.rename(path)
    fsync(path.parent)


def fsync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """A lock between processes, by a file. The system releases it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Wait until the lock is free, and take it."""
        self._acquire(fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Take the lock if it is free; returns whether it was."""
        try:
            self._acquire(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _acquire(self, how: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, how)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
