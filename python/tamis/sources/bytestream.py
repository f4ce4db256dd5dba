"""The bytes of a file from any offset, decompressed, in bounded memory."""

import gzip
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tamis.errors import TamisError

GZIP_RATIO = 200
"""The largest decompression ratio that is accepted. XML usually has 10, seldom 50."""

GZIP_FREE = 16 << 20
"""The ratio is not checked before this many bytes: small files may be very repetitive."""

_SKIP = 1 << 20


class StreamError(TamisError):
    """A file that cannot be read any further."""


class ByteStream:
    """A file, open at an offset into its decompressed bytes. A name that ends in `.gz` means gzip.

    A gzip file is not seekable: it is decompressed from its beginning, and everything before the offset is
    thrown away.
    """

    def __init__(self, path: Path, offset: int = 0, *, gzip_ratio: int = GZIP_RATIO) -> None:
        self._path = path
        self._ratio = gzip_ratio
        self._decompressed = 0
        self._gzip: gzip.GzipFile | None = None
        try:
            self._file: IO[bytes] = path.open("rb")
        except OSError as error:
            raise StreamError("unreadable", f"{path.name} cannot be opened: {error.strerror}") from error
        if path.suffix == ".gz":
            self._gzip = gzip.GzipFile(fileobj=self._file)
            while self._decompressed < offset and self.read(min(_SKIP, offset - self._decompressed)):
                pass
        else:
            self._file.seek(offset)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, none at the end; `StreamError` where the file is damaged."""
        try:
            if self._gzip is None:
                return self._file.read(size)
            # One block at a time: what was decompressed before a damaged spot is not lost.
            data = self._gzip.read1(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise StreamError("bad-gzip", f"{self._path.name} is damaged gzip: {error}") from error
        except OSError as error:
            raise StreamError("unreadable", f"{self._path.name} cannot be read: {error.strerror}") from error
        self._decompressed += len(data)
        allowed = max(GZIP_FREE, self._ratio * self._file.tell())
        if self._decompressed > allowed:
            reason = f"{self._path.name} decompresses to more than {self._ratio} times its size"
            raise StreamError("gzip-limit", f"{reason}: {self._decompressed} bytes, {allowed} allowed")
        return data

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
