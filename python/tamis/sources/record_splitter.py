"""Split a large XML file at its record elements: each record becomes a message, in bounded memory.

    <batch xmlns:p="u"><item>1</item><item>2</item></batch>     record = "item"
    → <item xmlns:p="u">1</item>, <item xmlns:p="u">2</item>

The splitter scans markup and does not parse: one pass, linear time. Between records it looks at every tag,
because the elements around a record declare its namespaces. Inside a record it looks only for the end tag.
It leaves well-formedness to the XML reader, with one exception: a record that seems to contain another record
may have lost its end tag. Such a record is read at once; if it is malformed, splitting resumes at the inner
record.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self

from tamis.engine import read_batch
from tamis.model.matching import Limits
from tamis.sources.bytestream import ByteStream
from tamis.sources.markup import (
    END_TAG,
    START_TAG,
    Declarations,
    RecordName,
    declarations,
    doctype_end,
    opener,
    with_declarations,
)
from tamis.sources.raw_message import RAW_BYTES, RawMessage
from tamis.sources.sliding_buffer import SlidingBuffer

STATE_BYTES = 64 << 10
"""The most bytes that the state of the elements around a record may have: every offset stores it."""

_TERMINATORS = {b"<!--": b"--", b"<![CDATA[": b"]]>", b"<?": b"?>"}


@dataclass(frozen=True, slots=True)
class State:
    """How far a file is split: the state after the message with this number. Stored as JSON."""

    offset: int = 0
    """Bytes of the decompressed file that are consumed."""
    number: int = 0
    encoding: str = ""
    """Empty at the beginning of the file: then it is detected."""
    open: list[tuple[str, Declarations]] = field(default_factory=list)
    """The open elements at the offset, outermost first."""
    depth: int | None = None
    """How many elements were open around the last record."""
    broken: tuple[int, int] | None = None
    """Set inside a damaged record: how many elements were open around it, and the fewest open since."""

    def to_json(self) -> dict[str, Any]:
        around = [[name, dict(declared)] for name, declared in self.open]
        return {**asdict(self), "open": around, "broken": None if self.broken is None else list(self.broken)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        around = [(name, declared) for name, declared in value["open"]]
        # Earlier versions stored Python's names of encodings.
        encoding = value["encoding"].replace("utf-16-", "utf-16")
        broken = None if value["broken"] is None else tuple(value["broken"])
        return cls(**{**value, "encoding": encoding, "open": around, "broken": broken})


def _weight(element: tuple[str, Declarations]) -> int:
    """How many bytes an open element takes in the state."""
    name, declared = element
    return len(name) + sum(len(prefix) + len(uri) for prefix, uri in declared.items())


class _Tag(NamedTuple):
    name: bytes
    end: int
    empty: bool


class _DamagedRecord(Exception):  # noqa: N818 - not an error of the program
    """The record that starts here is damaged."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class RecordSplitter:
    """The records of a file as messages. `state` is where a new splitter would continue."""

    def __init__(
        self,
        stream: ByteStream,
        element: str,
        limits: Limits,
        state: State | None = None,
        chunk: int = 1 << 18,
    ) -> None:
        """`stream` is open at the state's offset; `chunk` is how many bytes are read at once."""
        self._record = RecordName(element)
        self._limits = limits
        self._state = state or State()
        self._number = self._state.number
        self._open = list(self._state.open)
        self._open_bytes = sum(map(_weight, self._open))
        self._depth = self._state.depth
        self._broken = self._state.broken
        self._scope: Declarations | None = None
        self._stray: RawMessage | None = None
        self._buffer = SlidingBuffer(stream, self._state.offset, self._state.encoding, chunk)

    @property
    def state(self) -> State:
        return self._state

    @property
    def position(self) -> dict[str, Any]:
        return self._state.to_json()

    def sizes(self) -> Iterator[int]:
        return (len(message.xml) for message in self.messages())

    def messages(self) -> Iterator[RawMessage]:
        message = self._next()
        while message is not None:
            self._state = State(
                self._buffer.offset,
                message.number,
                self._buffer.encoding,
                list(self._open),
                self._depth,
                self._broken,
            )
            yield message
            message = self._next()

    def _next(self) -> RawMessage | None:
        """The next message or malformed region; None at the end of the file."""
        buffer = self._buffer
        while True:
            at = buffer.data.find(b"<")
            if at < 0:
                self._pass_text(len(buffer.data))
                if not buffer.grow():
                    return self._last()
                continue
            self._pass_text(at)
            tag = self._start_tag(0)
            is_record = tag is not None and self._record.matches(tag.name, self._scope_with(tag))
            # With a URI, the name of a malformed tag cannot be resolved.
            is_damaged = tag is None and self._record.uri is None and self._record.start.match(buffer.data)
            if (is_record or is_damaged) and self._stray:
                return self._emit_stray()
            if tag is not None and is_record:
                return self._read_record(tag)
            if is_damaged:
                return self._emit_damaged(
                    len(self._record.text) + 1, "bad-tag", "the record's start tag is malformed"
                )
            end, code, reason = self._step(tag)
            self._skip(end, code, reason)
            if code is None and self._stray:
                return self._emit_stray()

    def _last(self) -> RawMessage | None:
        """At the end of the file: report what is incomplete."""
        if self._stray:
            return self._emit_stray()
        if self._buffer.failure:
            failure, self._buffer.failure = self._buffer.failure, None
            self._open, self._broken = [], None
            return RawMessage(self._next_number(), self._buffer.offset, b"", failure.code, failure.reason)
        if self._open and not self._broken:
            name = self._open[-1][0]
            self._open = []
            reason = f"the file ends before </{name}>"
            return RawMessage(self._next_number(), self._buffer.offset, b"", "truncated-file", reason)
        if self._number == 0:
            reason = f"the file has no element {self._record.text}"
            return RawMessage(self._next_number(), 0, b"", "no-record", reason)
        return None

    def _pass_text(self, at: int) -> None:
        """Skip the text before a tag; outside the root element there must be none."""
        data = self._buffer.data
        if not self._stray:
            blank = at if self._open else at - len(data[:at].lstrip())
            self._buffer.discard(blank)
            at -= blank
        if at:
            self._skip(at, "stray-text", "text outside the root element")

    def _step(self, tag: _Tag | None) -> tuple[int, str | None, str]:
        """Where the markup ends that starts here and is no record, and what is wrong with it, if anything."""
        buffer = self._buffer
        buffer.ensure(len(b"<![CDATA["))
        kind = opener(buffer.data, 0)
        bad = (1, "bad-markup", "this is not valid markup")
        if kind == b"<":
            return bad if tag is None else self._enter(tag)
        if kind == b"</":
            return self._leave() or bad
        if kind == b"<!DOCTYPE":
            end = doctype_end(buffer.data, 0)
            while end is None and len(buffer.data) <= self._limits.document and buffer.grow():
                end = doctype_end(buffer.data, 0)
        else:
            end = self._terminated_end(kind, 0, self._limits.document)
        if (
            (self._broken or self._stray)
            and end is not None
            and self._record.start.search(buffer.data, 1, end)
        ):
            # Its start may be the damage. It must not hide the next record.
            return bad
        return bad if end is None else (end, None, "")

    def _enter(self, tag: _Tag) -> tuple[int, str | None, str]:
        """Enter an element that is no record; skip it if it is empty."""
        if tag.empty:
            return tag.end, None, ""
        if len(self._open) >= self._limits.depth:
            reason = f"{len(self._open)} elements are open, {self._limits.depth} are allowed"
            return tag.end, "depth-limit", reason
        name = tag.name.decode(errors="replace")
        element = (name, declarations(bytes(self._buffer.data[: tag.end])))
        if self._open_bytes + _weight(element) > STATE_BYTES:
            reason = f"the tags around records have more than {STATE_BYTES} bytes"
            return tag.end, "namespaces-limit", reason
        self._open.append(element)
        self._open_bytes += _weight(element)
        self._scope = None
        return tag.end, None, ""

    def _leave(self) -> tuple[int, str | None, str] | None:
        """Leave an element; None if this is no end tag."""
        tag = self._end_tag(0)
        if tag is None:
            return None
        name = tag.name.decode(errors="replace")
        names = [element for element, _ in self._open]
        code, reason = None, ""
        if name in names:
            depth = len(names) - 1 - names[::-1].index(name)
            if depth != len(names) - 1 and not self._broken:
                code, reason = "bad-nesting", f"</{name}> comes before </{names[-1]}>"
            self._close_to(depth)
        elif not self._broken:
            code, reason = "bad-nesting", f"</{name}> closes nothing"
            # It may end a record whose damaged start tag looked like an element around records.
            if self._depth is not None and self._record.matches(tag.name, self._in_scope()):
                self._close_to(self._depth)
        return tag.end, code, reason

    def _close_to(self, depth: int) -> None:
        self._open_bytes -= sum(map(_weight, self._open[depth:]))
        del self._open[depth:]
        self._scope = None
        if self._broken:
            self._broken = (self._broken[0], min(self._broken[1], len(self._open)))

    def _close_broken(self) -> None:
        """Leave a damaged record: elements opened in it are not open around the next one."""
        if self._broken:
            around, fewest = self._broken
            if fewest >= around:
                self._close_to(around)
            self._broken = None

    def _read_record(self, tag: _Tag) -> RawMessage:
        """Read the record that starts here."""
        self._close_broken()
        buffer = self._buffer
        try:
            end, is_doubtful = (tag.end, False) if tag.empty else self._record_end(tag)
            xml = bytes(memoryview(buffer.data)[:end])
            scope = self._in_scope()
            if scope:
                own = declarations(xml[: tag.end])
                carried = {prefix: uri for prefix, uri in sorted(scope.items()) if prefix not in own}
                xml = with_declarations(xml, tag.name, carried)
            if is_doubtful:
                self._check(xml)
        except _DamagedRecord as damage:
            return self._emit_damaged(tag.end, damage.code, damage.reason)
        self._depth = len(self._open)
        message = RawMessage(self._next_number(), buffer.offset, xml)
        buffer.discard(end)
        return message

    def _record_end(self, tag: _Tag) -> tuple[int, bool]:
        """Where the record with this start tag ends, and whether it seems to contain another record."""
        buffer, limit = self._buffer, self._limits.document
        inside = self._record.nested_markup(tag.name)
        at, depth, is_doubtful = tag.end, 1, False
        while True:
            match = inside.search(buffer.data, at)
            if (len(buffer.data) if match is None else match.end()) > limit:
                raise _DamagedRecord("document-limit", f"the record has more than {limit} bytes")
            if match is None:
                # The end of the buffer may cut a tag in two.
                at = max(at, len(buffer.data) - len(tag.name) - 10)
                if not buffer.grow():
                    raise _DamagedRecord(
                        "truncated-record", f"the file ends before </{tag.name.decode(errors='replace')}>"
                    )
                continue
            at = match.end()
            if match[1] is None:
                kind = opener(buffer.data, match.start())
                end = self._terminated_end(kind, match.start(), limit)
                if end is None:
                    raise _DamagedRecord(
                        "bad-markup", f"a {kind.decode()} inside the record is not terminated"
                    )
                at = end
                is_doubtful |= self._record.start.search(buffer.data, match.start(), end) is not None
            elif match[1]:
                outer = self._end_tag(match.start())
                if outer is not None:
                    depth, at = depth - 1, outer.end
                    if depth == 0:
                        # With a URI, a nested record may have another prefix.
                        by_uri = self._record.uri is not None
                        is_doubtful |= by_uri and self._record.start.search(buffer.data, 1, at) is not None
                        return at, is_doubtful
            else:
                is_doubtful = True
                inner = self._start_tag(match.start())
                if inner is None:
                    raise _DamagedRecord("bad-tag", "a start tag inside the record is malformed")
                depth, at = depth + (not inner.empty), inner.end
                if depth > self._limits.depth:
                    raise _DamagedRecord(
                        "depth-limit", f"{depth} records are open, {self._limits.depth} are allowed"
                    )

    def _end_tag(self, at: int) -> _Tag | None:
        """The end tag at an index; None if there is none or it is incomplete."""
        return self._tag(END_TAG, at)

    def _start_tag(self, at: int) -> _Tag | None:
        """The start tag at an index; None if there is none or it is incomplete."""
        self._buffer.ensure(at + 2)
        return self._tag(START_TAG, at)

    def _tag(self, pattern: re.Pattern[bytes], at: int) -> _Tag | None:
        """The tag that a pattern matches at an index, with the `>` after the match."""
        buffer, limit = self._buffer, at + self._limits.document
        match = pattern.match(buffer.data, at)
        while match and match.end() == len(buffer.data) <= limit and buffer.grow():
            match = pattern.match(buffer.data, at)
        if match is None or match.end() > limit or buffer.data[match.end() : match.end() + 1] != b">":
            return None
        return _Tag(match[1], match.end() + 1, buffer.data[match.end() - 1] == ord("/"))

    def _terminated_end(self, kind: bytes, at: int, limit: int) -> int | None:
        """Where a comment, CDATA section or processing instruction ends; None if not within the limit."""
        if kind not in _TERMINATORS:
            return None
        terminator = _TERMINATORS[kind]
        end = self._buffer.find(terminator, at + len(kind), limit)
        if end is None:
            return None
        if kind == b"<!--":
            # `--` inside a comment is malformed; more likely it belongs to the next comment.
            self._buffer.ensure(end + 3)
            return end + 3 if self._buffer.data.startswith(b"-->", end) else None
        return end + len(terminator)

    def _check(self, xml: bytes) -> None:
        """Read the message, and raise if it is malformed."""
        for error in read_batch([xml], self._limits).errors.to_pylist():
            raise _DamagedRecord(error["code"], error["reason"])

    def _emit_damaged(self, end: int, code: str, reason: str) -> RawMessage:
        """Report a damaged record, and continue after its start tag."""
        buffer = self._buffer
        buffer.ensure(RAW_BYTES)
        inner = self._record.start.search(buffer.data, 1, RAW_BYTES)
        region = bytes(buffer.data[: inner.start() if inner else RAW_BYTES])
        self._close_broken()
        self._broken = (len(self._open), len(self._open))
        message = RawMessage(self._next_number(), buffer.offset, region, code, reason)
        buffer.discard(end)
        return message

    def _skip(self, end: int, code: str | None, reason: str) -> None:
        """Skip bytes; malformed ones are collected as one stray region."""
        buffer = self._buffer
        if code is not None and not self._broken:
            head = bytes(buffer.data[: min(end, RAW_BYTES)])
            if self._stray is None:
                self._stray = RawMessage(0, buffer.offset, head, code, reason)
            elif len(self._stray.xml) < RAW_BYTES:
                self._stray = replace(self._stray, xml=(self._stray.xml + head)[:RAW_BYTES])
        buffer.discard(end)

    def _emit_stray(self) -> RawMessage:
        assert self._stray is not None
        stray, self._stray = self._stray, None
        return replace(stray, number=self._next_number())

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _in_scope(self) -> Declarations:
        """The namespace declarations in scope."""
        if self._scope is None:
            self._scope = {}
            for _, declared in self._open:
                self._scope.update(declared)
        return self._scope

    def _scope_with(self, tag: _Tag) -> Declarations:
        """The declarations in scope for an element that starts here; only needed for names with a URI."""
        if self._record.uri is None:
            return {}
        return self._in_scope() | declarations(bytes(self._buffer.data[: tag.end]))
