"""A window that moves over a file: the bytes not yet done with, as UTF-8."""

from tamis.sources.bytestream import ByteStream, StreamError
from tamis.sources.transcode import HEAD_BYTES, Transcoder, encoding_of

_LARGE = 1 << 20


class Window:
    """`data` starts at the file's byte `offset`, and grows when more is asked for.

    A file that breaks off ends there, and `failure` says why.
    """

    def __init__(self, stream: ByteStream, offset: int, encoding: str, chunk: int) -> None:
        self.data = bytearray()
        self.offset = offset
        self.failure: StreamError | None = None
        self._stream = stream
        self._chunk = chunk
        self._ended = False
        self._dropped = 0
        # Terminator → (no such thing from here, up to here), in bytes of UTF-8 since the window was made.
        self._absent: dict[bytes, tuple[int, int]] = {}
        self._transcoder = Transcoder(encoding or "utf-8")
        if not encoding:
            self._begin()

    @property
    def encoding(self) -> str:
        return self._transcoder.encoding

    def _begin(self) -> None:
        """Tell the encoding by the beginning of the file."""
        head = b""
        while len(head) < HEAD_BYTES and (piece := self._read()):
            head += piece
        try:
            encoding, mark = encoding_of(head)
        except StreamError as error:
            self.failure = error
            self._ended = True
            return
        self._transcoder = Transcoder(encoding)
        self.offset += mark
        self.data += self._transcoder.utf8(head[mark:]) if head[mark:] else b""

    def _read(self) -> bytes:
        try:
            # A large window grows by more at once: what did not end in it is searched again from its start.
            size = self._chunk if len(self.data) < _LARGE else len(self.data) // 2
            return b"" if self._ended else self._stream.read(size)
        except StreamError as error:
            self.failure = error
            return b""

    def more(self) -> bool:
        """Make the window grow; false at the end of the file."""
        if self._ended:
            return False
        piece = self._read()
        self._ended = not piece
        self.data += self._transcoder.utf8(piece)
        return True

    def want(self, size: int) -> None:
        """Make the window so large, if the file has as much."""
        while len(self.data) < size and self.more():
            pass

    def drop(self, count: int) -> None:
        """Be done with the first bytes."""
        if count:
            self.offset += self._transcoder.width(self.data, count)
            self._dropped += count
            del self.data[:count]

    def find(self, what: bytes, start: int, limit: int) -> int | None:
        """Where something occurs next, but not behind a limit; none if it does not.

        What was searched in vain is not searched again: many openings without an end cost no more than one.
        """
        since, until = self._absent.get(what, (0, 0))
        here = start + self._dropped
        if not since <= here <= until:
            since, until = here, here
        at = until - self._dropped if until > here else start
        while (found := self.data.find(what, at)) < 0 and len(self.data) <= limit:
            at = max(at, len(self.data) - len(what) + 1)
            if not self.more():
                break
        if 0 <= found <= limit:
            return found
        searched = found if found >= 0 else len(self.data) - len(what) + 1
        self._absent[what] = (since, max(until, self._dropped + searched))
        return None
