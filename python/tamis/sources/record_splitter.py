"""Cutting a big file at a record element: each record becomes a message, in bounded memory.

The cut is lexical. Between records every tag is looked at, since what surrounds a record declares the
namespaces that it uses; inside a record only what can end it. Whether a record is well-formed is left to the
reader of messages, with one exception: a record that seems to contain another record may be one whose end was
damaged, so the reader is asked at once, and if it refuses, reading resumes at the record inside.
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
from tamis.sources.raw_message import RAW_BYTES, Cut
from tamis.sources.sliding_buffer import Window

STATE_BYTES = 64 << 10
"""So much may be known of the elements around a record. It is written down with every offset."""

_TERMINATORS = {b"<!--": b"--", b"<![CDATA[": b"]]>", b"<?": b"?>"}


@dataclass(frozen=True, slots=True)
class State:
    """Where the cutting of a file stands, after the cut with this number. It goes through JSON."""

    offset: int = 0
    """Bytes of the unpacked file that are done with."""
    number: int = 0
    encoding: str = ""
    """Empty at the beginning of the file, which tells it."""
    open: list[tuple[str, Declarations]] = field(default_factory=list)
    """The elements around this place, outermost first."""
    depth: int | None = None
    """How many elements stood around the last record."""
    broken: tuple[int, int] | None = None
    """Inside a record that could not be cut: how many elements stood around it, and the fewest since."""

    def to_json(self) -> dict[str, Any]:
        around = [[name, dict(declared)] for name, declared in self.open]
        return {**asdict(self), "open": around, "broken": None if self.broken is None else list(self.broken)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        around = [(name, declared) for name, declared in value["open"]]
        broken = None if value["broken"] is None else tuple(value["broken"])
        return cls(**{**value, "open": around, "broken": broken})


def _weight(element: tuple[str, Declarations]) -> int:
    """How many bytes an open element takes in a state."""
    name, declared = element
    return len(name) + sum(len(prefix) + len(uri) for prefix, uri in declared.items())


class _Tag(NamedTuple):
    name: bytes
    end: int
    empty: bool


class _Broken(Exception):  # noqa: N818 - not an error of the program
    """No record can be made of what starts here."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class RecordCutter:
    """The cuts of a file, one after the other. `state` is where a new cutter would go on."""

    def __init__(
        self,
        stream: ByteStream,
        element: str,
        limits: Limits,
        state: State | None = None,
        chunk: int = 1 << 18,
    ) -> None:
        """`stream` is open at the state's offset; `chunk` is how much is read at once."""
        self._record = RecordName(element)
        self._limits = limits
        self._state = state or State()
        self._number = self._state.number
        self._open = list(self._state.open)
        self._open_bytes = sum(map(_weight, self._open))
        self._depth = self._state.depth
        self._broken = self._state.broken
        self._scope: Declarations | None = None
        self._stray: Cut | None = None
        self._window = Window(stream, self._state.offset, self._state.encoding, chunk)

    @property
    def state(self) -> State:
        return self._state

    @property
    def position(self) -> dict[str, Any]:
        return self._state.to_json()

    def sizes(self) -> Iterator[int]:
        return (len(cut.xml) for cut in self.cuts())

    def cuts(self) -> Iterator[Cut]:
        cut = self._next()
        while cut is not None:
            self._state = State(
                self._window.offset,
                cut.number,
                self._window.encoding,
                list(self._open),
                self._depth,
                self._broken,
            )
            yield cut
            cut = self._next()

    def _next(self) -> Cut | None:
        """The next cut, or none at the end of the file."""
        window = self._window
        while True:
            at = window.data.find(b"<")
            if at < 0:
                self._pass_text(len(window.data))
                if not window.more():
                    return self._last()
                continue
            self._pass_text(at)
            tag = self._whole_tag(0)
            is_record = tag is not None and self._record.names(tag.name, self._scope_with(tag))
            # With a URI a malformed tag names nothing.
            is_damaged = tag is None and self._record.uri is None and self._record.start.match(window.data)
            if (is_record or is_damaged) and self._stray:
                return self._set_aside()
            if tag is not None and is_record:
                return self._cut_record(tag)
            if is_damaged:
                return self._give_up(
                    len(self._record.text) + 1, "bad-tag", "the record's start tag is malformed"
                )
            end, code, reason = self._step(tag)
            self._take(end, code, reason)
            if code is None and self._stray:
                return self._set_aside()

    def _last(self) -> Cut | None:
        """What is to be said at the end of the file."""
        if self._stray:
            return self._set_aside()
        if self._window.failure:
            failure, self._window.failure = self._window.failure, None
            self._open, self._broken = [], None
            return Cut(self._next_number(), self._window.offset, b"", failure.code, failure.reason)
        if self._open and not self._broken:
            name = self._open[-1][0]
            self._open = []
            reason = f"the file ends before </{name}>"
            return Cut(self._next_number(), self._window.offset, b"", "truncated-file", reason)
        if self._number == 0:
            reason = f"the file has no element {self._record.text}"
            return Cut(self._next_number(), 0, b"", "no-record", reason)
        return None

    def _pass_text(self, at: int) -> None:
        """Pass over the text before a tag; outside all elements there must be none."""
        data = self._window.data
        if not self._stray:
            blank = at if self._open else at - len(data[:at].lstrip())
            self._window.drop(blank)
            at -= blank
        if at:
            self._take(at, "stray-text", "text outside all elements")

    def _step(self, tag: _Tag | None) -> tuple[int, str | None, str]:
        """What to pass over at a `<` that starts no record: up to where, and what is wrong with it."""
        window = self._window
        window.want(len(b"<![CDATA["))
        kind = opener(window.data, 0)
        bad = (1, "bad-markup", "this is no markup")
        if kind == b"<":
            return bad if tag is None else self._enter(tag)
        if kind == b"</":
            return self._leave() or bad
        if kind == b"<!DOCTYPE":
            end = doctype_end(window.data, 0)
            while end is None and len(window.data) <= self._limits.document and window.more():
                end = doctype_end(window.data, 0)
        else:
            end = self._hidden_end(kind, 0, self._limits.document)
        if (
            (self._broken or self._stray)
            and end is not None
            and self._record.start.search(window.data, 1, end)
        ):
            # It may be what is broken here. It must not hide the next record.
            return bad
        return bad if end is None else (end, None, "")

    def _enter(self, tag: _Tag) -> tuple[int, str | None, str]:
        """Go into an element that is no record, or past it if it is empty."""
        if tag.empty:
            return tag.end, None, ""
        if len(self._open) >= self._limits.depth:
            reason = f"{len(self._open)} elements are open, {self._limits.depth} are allowed"
            return tag.end, "depth-limit", reason
        name = tag.name.decode(errors="replace")
        element = (name, declarations(bytes(self._window.data[: tag.end])))
        if self._open_bytes + _weight(element) > STATE_BYTES:
            reason = f"the tags around records have more than {STATE_BYTES} bytes"
            return tag.end, "namespaces-limit", reason
        self._open.append(element)
        self._open_bytes += _weight(element)
        self._scope = None
        return tag.end, None, ""

    def _leave(self) -> tuple[int, str | None, str] | None:
        """Go out of an element; none if this is no end tag."""
        tag = self._end_tag(0)
        if tag is None:
            return None
        name = tag.name.decode(errors="replace")
        names = [element for element, _ in self._open]
        code, reason = None, ""
        if name in names:
            place = len(names) - 1 - names[::-1].index(name)
            if place != len(names) - 1 and not self._broken:
                code, reason = "bad-nesting", f"</{name}> comes before </{names[-1]}>"
            self._close_to(place)
        elif not self._broken:
            code, reason = "bad-nesting", f"</{name}> closes nothing"
            # It may close a record whose start tag was damaged and taken for something around records.
            if self._depth is not None and self._record.names(tag.name, self._in_scope()):
                self._close_to(self._depth)
        return tag.end, code, reason

    def _close_to(self, depth: int) -> None:
        self._open_bytes -= sum(map(_weight, self._open[depth:]))
        del self._open[depth:]
        self._scope = None
        if self._broken:
            self._broken = (self._broken[0], min(self._broken[1], len(self._open)))

    def _close_broken(self) -> None:
        """Come out of a broken record: what was opened in it does not surround the next one."""
        if self._broken:
            around, fewest = self._broken
            if fewest >= around:
                self._close_to(around)
            self._broken = None

    def _cut_record(self, tag: _Tag) -> Cut:
        """The record that starts here."""
        self._close_broken()
        window = self._window
        try:
            end, is_doubtful = (tag.end, False) if tag.empty else self._record_end(tag)
            xml = bytes(memoryview(window.data)[:end])
            scope = self._in_scope()
            if scope:
                own = declarations(xml[: tag.end])
                carried = {prefix: uri for prefix, uri in sorted(scope.items()) if prefix not in own}
                xml = with_declarations(xml, tag.name, carried)
            if is_doubtful:
                self._check(xml)
        except _Broken as broken:
            return self._give_up(tag.end, broken.code, broken.reason)
        self._depth = len(self._open)
        cut = Cut(self._next_number(), window.offset, xml)
        window.drop(end)
        return cut

    def _record_end(self, tag: _Tag) -> tuple[int, bool]:
        """Where the record ends whose start tag this is, and whether it seems to contain another."""
        window, limit = self._window, self._limits.document
        inside = self._record.inside(tag.name)
        at, depth, is_doubtful = tag.end, 1, False
        while True:
            match = inside.search(window.data, at)
            if (len(window.data) if match is None else match.end()) > limit:
                raise _Broken("document-limit", f"the record has more than {limit} bytes")
            if match is None:
                # A tag may be cut off by the window's end.
                at = max(at, len(window.data) - len(tag.name) - 10)
                if not window.more():
                    raise _Broken(
                        "truncated-record", f"the file ends before </{tag.name.decode(errors='replace')}>"
                    )
                continue
            at = match.end()
            if match[1] is None:
                kind = opener(window.data, match.start())
                end = self._hidden_end(kind, match.start(), limit)
                if end is None:
                    raise _Broken("bad-markup", f"no end was found of a {kind.decode()} inside the record")
                at = end
                is_doubtful |= self._record.start.search(window.data, match.start(), end) is not None
            elif match[1]:
                outer = self._end_tag(match.start())
                if outer is not None:
                    depth, at = depth - 1, outer.end
                    if depth == 0:
                        # By URI, a record inside may have another prefix.
                        by_uri = self._record.uri is not None
                        is_doubtful |= by_uri and self._record.start.search(window.data, 1, at) is not None
                        return at, is_doubtful
            else:
                is_doubtful = True
                inner = self._whole_tag(match.start())
                if inner is None:
                    raise _Broken("bad-tag", "a start tag inside the record is malformed")
                depth, at = depth + (not inner.empty), inner.end
                if depth > self._limits.depth:
                    raise _Broken(
                        "depth-limit", f"{depth} records are open, {self._limits.depth} are allowed"
                    )

    def _end_tag(self, at: int) -> _Tag | None:
        """The end tag at a place; none if there is none, or no end to it."""
        return self._finished(END_TAG, at)

    def _whole_tag(self, at: int) -> _Tag | None:
        """The start tag at a place; none if there is none, or no end to it."""
        self._window.want(at + 2)
        return self._finished(START_TAG, at)

    def _finished(self, pattern: re.Pattern[bytes], at: int) -> _Tag | None:
        """The tag at a place, with the `>` that a pattern leaves to be found."""
        window, limit = self._window, at + self._limits.document
        match = pattern.match(window.data, at)
        while match and match.end() == len(window.data) <= limit and window.more():
            match = pattern.match(window.data, at)
        if match is None or match.end() > limit or window.data[match.end() : match.end() + 1] != b">":
            return None
        return _Tag(match[1], match.end() + 1, window.data[match.end() - 1] == ord("/"))

    def _hidden_end(self, kind: bytes, at: int, limit: int) -> int | None:
        """Where a comment, CDATA section or instruction ends, within a limit; none if it does not."""
        if kind not in _TERMINATORS:
            return None
        terminator = _TERMINATORS[kind]
        end = self._window.find(terminator, at + len(kind), limit)
        if end is None:
            return None
        if kind == b"<!--":
            # `--` inside a comment is malformed, and more likely the next comment's.
            self._window.want(end + 3)
            return end + 3 if self._window.data.startswith(b"-->", end) else None
        return end + len(terminator)

    def _check(self, xml: bytes) -> None:
        """Ask the reader of messages."""
        for error in read_batch([xml], self._limits).errors.to_pylist():
            raise _Broken(error["code"], error["reason"])

    def _give_up(self, end: int, code: str, reason: str) -> Cut:
        """Set a record aside that cannot be cut, and go on behind its start tag."""
        window = self._window
        window.want(RAW_BYTES)
        inner = self._record.start.search(window.data, 1, RAW_BYTES)
        region = bytes(window.data[: inner.start() if inner else RAW_BYTES])
        self._close_broken()
        self._broken = (len(self._open), len(self._open))
        cut = Cut(self._next_number(), window.offset, region, code, reason)
        window.drop(end)
        return cut

    def _take(self, end: int, code: str | None, reason: str) -> None:
        """Pass over bytes; if something is wrong with them they belong to a region that is set aside."""
        window = self._window
        if code is not None and not self._broken:
            head = bytes(window.data[: min(end, RAW_BYTES)])
            if self._stray is None:
                self._stray = Cut(0, window.offset, head, code, reason)
            elif len(self._stray.xml) < RAW_BYTES:
                self._stray = replace(self._stray, xml=(self._stray.xml + head)[:RAW_BYTES])
        window.drop(end)

    def _set_aside(self) -> Cut:
        assert self._stray is not None
        cut, self._stray = self._stray, None
        return replace(cut, number=self._next_number())

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _in_scope(self) -> Declarations:
        """The declarations that hold here."""
        if self._scope is None:
            self._scope = {}
            for _, declared in self._open:
                self._scope.update(declared)
        return self._scope

    def _scope_with(self, tag: _Tag) -> Declarations:
        """The declarations that hold for an element that starts here; only names by URI need them."""
        if self._record.uri is None:
            return {}
        return self._in_scope() | declarations(bytes(self._window.data[: tag.end]))
