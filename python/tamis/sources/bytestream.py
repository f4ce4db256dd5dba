"""The bytes of a file from any place on, unpacked, in bounded memory."""

import gzip
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tamis.errors import TamisError

GZIP_RATIO = 200
"""A gzip file may unpack to so many times its size. XML packs to a tenth, seldom to a fiftieth."""

GZIP_FREE = 16 << 20
"""The ratio is not asked for before so many bytes are unpacked: small files may be very even."""

_SKIP = 1 << 20


class StreamError(TamisError):
    """A file that cannot be read on."""


class ByteStream:
    """A file, open at an offset into its unpacked bytes. Gzip is told by the name, `.gz`.

    There is no way into the middle of a gzip file: it is unpacked from its beginning, and what comes before
    the offset is thrown away.
    """

    def __init__(self, path: Path, offset: int = 0, *, gzip_ratio: int = GZIP_RATIO) -> None:
        self._path = path
        self._ratio = gzip_ratio
        self._unpacked = 0
        self._packed: gzip.GzipFile | None = None
        try:
            self._file: IO[bytes] = path.open("rb")
        except OSError as error:
            raise StreamError("unreadable", f"{path.name} cannot be opened: {error.strerror}") from error
        if path.suffix == ".gz":
            self._packed = gzip.GzipFile(fileobj=self._file)
            while self._unpacked < offset and self.read(min(_SKIP, offset - self._unpacked)):
                pass
        else:
            self._file.seek(offset)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, and none at the end; `StreamError` where the file is broken."""
        try:
            if self._packed is None:
                return self._file.read(size)
            # One step at a time: what was unpacked before a broken spot is not lost with it.
            data = self._packed.read1(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise StreamError("bad-gzip", f"{self._path.name} is broken as gzip: {error}") from error
        except OSError as error:
            raise StreamError("unreadable", f"{self._path.name} cannot be read: {error.strerror}") from error
        self._unpacked += len(data)
        allowed = max(GZIP_FREE, self._ratio * self._file.tell())
        if self._unpacked > allowed:
            reason = f"{self._path.name} unpacks to more than {self._ratio} times its size"
            raise StreamError("gzip-limit", f"{reason}: {self._unpacked} bytes, {allowed} allowed")
        return data

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
