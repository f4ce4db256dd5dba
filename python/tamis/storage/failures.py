"""File-system errors as errors of tamis: with a code, the place, and what to do."""

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tamis.errors import SinkError, StoreError, TamisError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class StorageErrors:
    """Converts the errors of one kind of storage to errors of tamis."""

    kind: type[TamisError]
    name: str
    """The first part of each code, as in `sink-url`."""
    unreachable: str
    """What to do about any other error."""
    causes: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """By `errno`: the second part of the code, and what to do."""

    @contextmanager
    def at(self, place: object) -> Iterator[None]:
        """Turn each `OSError` of the block into an error that names the place."""
        try:
            yield
        except OSError as error:
            cause, remedy = self.causes.get(error.errno or 0, ("unreachable", self.unreachable))
            raise self.kind(f"{self.name}-{cause}", f"{place}: {error}; {remedy}") from error

    def bad_url(self, url: str, error: Exception) -> TamisError:
        """The error for a URL that names no file system."""
        return self.kind(f"{self.name}-url", f"{url}: {error}; name a directory or a URL of a file system")


STORE_ERRORS = StorageErrors(StoreError, "store", "is it there, may we write to it, and is there room?")

SINK_ERRORS = StorageErrors(
    SinkError,
    "sink",
    "is it there, and can this host reach it?",
    {
        **dict.fromkeys(_FULL, ("full", "make room; nothing of the batch counts")),
        **dict.fromkeys(_DENIED, ("denied", "give the job the right to write there")),
    },
)
