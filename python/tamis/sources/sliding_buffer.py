"""A buffer that slides over a file: the bytes that are not consumed yet, as UTF-8."""

from tamis.sources.bytestream import ByteStream, StreamError
from tamis.sources.transcode import HEAD_BYTES, UTF8, Transcoder, encoding_of

_LARGE = 1 << 20

_STATEFUL = ("iso-2022-jp",)
"""Encodings with escape sequences that change the meaning of bytes: no file can be read from its middle."""


class SlidingBuffer:
    """`data` starts at the file's byte `offset` and grows on demand.

    A file that cannot be read further ends there, and `failure` holds the reason.
    """

    def __init__(self, stream: ByteStream, offset: int, encoding: str, chunk: int) -> None:
        self.data = bytearray()
        self.offset = offset
        self.failure: StreamError | None = None
        self._stream = stream
        self._chunk = chunk
        self._ended = False
        self._discarded = 0
        # Terminator → the range in which it does not occur, in bytes of UTF-8 since the buffer was created.
        self._absent: dict[bytes, tuple[int, int]] = {}
        self._transcoder = Transcoder(encoding or UTF8)
        if not encoding:
            self._detect_encoding()

    @property
    def encoding(self) -> str:
        return self._transcoder.encoding

    def _detect_encoding(self) -> None:
        """Detect the encoding from the first bytes of the file."""
        head = b""
        while len(head) < HEAD_BYTES and (chunk := self._read()):
            head += chunk
        try:
            encoding, mark = encoding_of(head)
            if encoding in _STATEFUL:
                reason = f"a file in {encoding} cannot be split at a record: send UTF-8"
                raise StreamError("unsupported-encoding", reason)
        except StreamError as error:
            self.failure = error
            self._ended = True
            return
        self._transcoder = Transcoder(encoding)
        self.offset += mark
        self.data += self._transcoder.utf8(head[mark:], is_last=False)

    def _read(self) -> bytes:
        try:
            # A large buffer grows in larger steps: unterminated markup is searched again from its start.
            size = self._chunk if len(self.data) < _LARGE else len(self.data) // 2
            return b"" if self._ended else self._stream.read(size)
        except StreamError as error:
            self.failure = error
            return b""

    def grow(self) -> bool:
        """Read more of the file; false at its end."""
        if self._ended:
            return False
        chunk = self._read()
        self._ended = not chunk
        self.data += self._transcoder.utf8(chunk, is_last=self._ended)
        return True

    def ensure(self, size: int) -> None:
        """Grow to `size` bytes, if the file has as many."""
        while len(self.data) < size and self.grow():
            pass

    def discard(self, count: int) -> None:
        """Consume the first `count` bytes."""
        if count:
            self.offset += self._transcoder.source_length(count)
            self._discarded += count
            del self.data[:count]

    def find(self, what: bytes, start: int, limit: int) -> int | None:
        """Where `what` occurs at or after `start` and not after `limit`; None if it does not.

        A range that was searched without success is not searched again, so many unterminated comments
        cost no more than one.
        """
        since, until = self._absent.get(what, (0, 0))
        here = start + self._discarded
        if not since <= here <= until:
            since, until = here, here
        at = until - self._discarded if until > here else start
        while (found := self.data.find(what, at)) < 0 and len(self.data) <= limit:
            at = max(at, len(self.data) - len(what) + 1)
            if not self.grow():
                break
        if 0 <= found <= limit:
            return found
        searched = found if found >= 0 else len(self.data) - len(what) + 1
        self._absent[what] = (since, max(until, self._discarded + searched))
        return None
