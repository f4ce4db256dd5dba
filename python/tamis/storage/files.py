"""Files that appear whole or not at all, and locks between processes."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import StoreError

DRAFT = ".draft-"
"""How the names of unfinished files begin."""


@contextmanager
def told(place: object) -> Iterator[None]:
    """A file system's errors as ours."""
    try:
        yield
    except OSError as error:
        reason = f"{place}: {error}; is it there, may we write to it, and is there room?"
        raise StoreError("store-unreachable", reason) from error


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A name to write to; what was written then stands, safely, under `path`."""
    draft = new_draft(path.parent)
    try:
        yield draft
        settle(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def new_draft(directory: Path) -> Path:
    """A name in a directory that nobody else writes to."""
    return directory / f"{DRAFT}{uuid.uuid4().hex}"


def settle(draft: Path, path: Path) -> None:
    """Give a finished draft its name: both are safe then, whatever happens to the machine."""
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are safe."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """A lock between processes, by a file; the system opens it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Wait for it."""
        self._acquire(fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Take it if nobody has it."""
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
        """Give it back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
