"""Messages → inboxes. Accepted means: stored, and known by its id, whatever happens next.

    1. the messages are written to the inbox, under a name that nobody reads yet, and synced
    2. one transaction notes their ids and the name of the file: from now on they are accepted
    3. the file gets its name, and is read

A crash before 2 leaves a file that nobody refers to, and it is dropped; after 2, one that is let in at the
next start. Those who publish at the same time share a file, a transaction and the waiting for the disk.
"""

import contextlib
import errno
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.catalog.accepted import Accepted
from tamis.errors import TamisError
from tamis.service.errors import ServiceError
from tamis.settings import Source
from tamis.sources.bytestream import StreamError
from tamis.sources.directory import DirectorySource
from tamis.sources.ledger import sync_folder
from tamis.sources.transcode import HEAD_BYTES, encoding_of

log = logging.getLogger(__name__)

PREFIX = "published-"
"""How our files begin; then comes how many messages they have."""

COUNT_SECONDS = 0.5
"""How long it is believed how many messages wait in an inbox."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message as somebody publishes it."""

    id: str
    xml: str | bytes
    """Text where the publisher's characters are known, else bytes that say themselves what they are."""


@dataclass(slots=True, eq=False)
class _Request:
    """What one publisher waits for."""

    source: DirectorySource
    messages: Sequence[NewMessage]
    fresh: set[str] = field(default_factory=set)
    """The messages that were not known."""
    done: bool = False
    error: Exception | None = None


class InboxWriter:
    """The inboxes of a service. One process at a time publishes to an inbox."""

    def __init__(
        self,
        accepted: Accepted,
        sources: Iterable[Source],
        backlog: int,
        read_until: Callable[[str], float] = lambda source: 0.0,
    ) -> None:
        """`read_until` tells of a source up to when, in seconds since 1970, all that entered was read."""
        self._accepted = accepted
        self._read_until = read_until
        # Where files stay, nobody can tell how many wait.
        self.sources = [
            source for source in sources if isinstance(source, DirectorySource) and source.after != "keep"
        ]
        self._backlog = backlog
        self._waiting: list[_Request] = []
        self._queueing = threading.Lock()
        self._writing = threading.Lock()
        self._entered: dict[Path, list[str]] = {}
        """Files that have entered an inbox: once it is synced, the catalog need not remember them."""
        self._late: list[Path] = []
        """Files that are accepted, and could not enter yet."""
        self._counts: dict[str, tuple[float, int]] = {}
        for source in self.sources:
            source.path.mkdir(parents=True, exist_ok=True)

    def source(self, tenant: str, name: str | None = None) -> DirectorySource:
        """Where messages of a tenant go: to the source that is named, or to the first."""
        for source in self.sources:
            if source.tenant == tenant and name in (None, source.name):
                return source
        named = "" if name is None else f" {name}"
        whose = f"tenant {tenant} has" if tenant else "there is"
        raise ServiceError(
            "no-source", f"{whose} no inbox{named} to publish to: see [[source]] in the settings"
        )

    def publish(self, source: DirectorySource, messages: Sequence[NewMessage]) -> set[str]:
        """Accept messages; the ids of those that were not accepted before."""
        self._check(source, messages)
        request = _Request(source, messages)
        with self._queueing:
            self._waiting.append(request)
        with self._writing:
            # Who wrote before may have written this too.
            if not request.done:
                with self._queueing:
                    group, self._waiting = self._waiting, []
                self._store(group)
        if request.error is not None:
            raise request.error
        return request.fresh

    def waiting(self, source: DirectorySource) -> int:
        """About how many messages an inbox holds that were not yet read."""
        at, count = self._counts.get(source.name, (-1.0, 0))
        if not 0 <= time.monotonic() - at <= COUNT_SECONDS:
            count = self._count(source)
            self._counts[source.name] = time.monotonic(), count
        return count

    def _count(self, source: DirectorySource) -> int:
        # The files of a batch leave the inbox with the next one: until then they are there, and read.
        until = self._read_until(source.name)
        count = 0
        with os.scandir(source.path) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    if not until or file.stat().st_ctime > until:
                        count += _messages_in(file.name)
        return count

    def finish(self) -> None:
        """Let in, or drop, what a crash left behind; to be called before anything is published."""
        self._resolve([draft for source in self.sources for draft in source.path.glob(f".{PREFIX}*")])

    def _check(self, source: DirectorySource, messages: Sequence[NewMessage]) -> None:
        limit = source.limits.document
        for message in messages:
            size = len(message.xml)
            if size > limit:
                reason = f"message {message.id} has {size} bytes, {limit} are allowed"
                raise ServiceError("message-limit", reason, value=size, limit=limit)
        behind = self.waiting(source)
        if behind >= self._backlog:
            reason = (
                f"{behind} messages wait already, more than {self._backlog} are not taken: try again later"
            )
            raise ServiceError("backlog", reason, value=behind, limit=self._backlog)

    def _store(self, group: list[_Request]) -> None:
        """Accept what a group of publishers brings; an error is theirs together."""
        error: Exception | None = ServiceError("not-stored", "nothing was accepted; try again later")
        try:
            self._accept(group)
            error = None
        except TamisError as known:
            error = known
        except OSError as failed:
            code = "disk-full" if failed.errno in _FULL else "not-stored"
            error = ServiceError(code, f"nothing was accepted: {failed.strerror}; try again later")
        finally:
            # Whatever happened, nobody may take silence for an answer.
            for request in group:
                request.error = error
                request.done = True

    def _accept(self, group: list[_Request]) -> None:
        self._let_in()
        fresh = self._fresh(group)
        if not fresh:
            return
        drafts: list[Path] = []
        try:
            for source, messages in fresh:
                for suffix, some in _parted(messages):
                    draft = source.path / f".{PREFIX}{len(some)}-{uuid.uuid4().hex}.{suffix}"
                    drafts.append(draft)
                    _write(draft, some)
                sync_folder(source.path)
            ids = [(source.name, message.id) for source, messages in fresh for message in messages]
            # Those are synced that entered before the drafts were written.
            entered = [name for source, _ in fresh for name in self._entered.get(source.path, ())]
            self._accepted.accept(ids, [_name(draft) for draft in drafts], entered)
            for source, _ in fresh:
                self._entered.pop(source.path, None)
        except BaseException:
            with contextlib.suppress(TamisError, OSError):
                self._resolve(drafts)
            raise
        self._late += drafts
        self._let_in()
        for source, messages in fresh:
            at, count = self._counts.get(source.name, (0.0, 0))
            self._counts[source.name] = at, count + len(messages)

    def _fresh(self, group: list[_Request]) -> list[tuple[DirectorySource, list[NewMessage]]]:
        """The messages that are not known, by source; each request is told which are its own."""
        found = []
        for source in {request.source.name: request.source for request in group}.values():
            requests = [request for request in group if request.source.name == source.name]
            known = self._accepted.known(source.name, {one.id for r in requests for one in r.messages})
            new: dict[str, NewMessage] = {}
            for request in requests:
                for message in request.messages:
                    if message.id not in known and message.id not in new:
                        new[message.id] = message
                        request.fresh.add(message.id)
            if new:
                found.append((source, list(new.values())))
        return found

    def _let_in(self) -> None:
        """What is accepted enters; if it cannot, it waits for the next publisher, or the next start."""
        waiting, self._late = self._late, []
        for draft in waiting:
            try:
                self._enter(draft)
            except OSError as error:
                log.error("%s is accepted and cannot enter its inbox: %s", draft, error)
                self._late.append(draft)

    def _resolve(self, drafts: Sequence[Path]) -> None:
        """Let those files in that the catalog has, and drop the others."""
        if drafts:
            entering = self._accepted.entering()
            for draft in drafts:
                if _name(draft) in entering:
                    log.info("lets %s in", _name(draft))
                    self._enter(draft)
                else:
                    draft.unlink(missing_ok=True)

    def _enter(self, draft: Path) -> None:
        """Let a file in. If the machine crashes before the disk knows it, the catalog still does."""
        draft.rename(draft.with_name(_name(draft)))
        self._entered.setdefault(draft.parent, []).append(_name(draft))


def _parted(messages: Sequence[NewMessage]) -> Iterator[tuple[str, list[NewMessage]]]:
    """What goes into which kind of file: text into lines, other bytes into a table."""
    texts, others = [], []
    for message in messages:
        text = _text(message)
        if text is None:
            others.append(message)
        else:
            texts.append(NewMessage(message.id, text))
    if texts:
        yield "jsonl", texts
    if others:
        yield "parquet", others


def _write(draft: Path, messages: Sequence[NewMessage]) -> None:
    """Write a file; it is on the disk when this returns."""
    with draft.open("xb") as file:
        if draft.suffix == ".jsonl":
            for message in messages:
                line = json.dumps({"id": message.id, "xml": message.xml}, ensure_ascii=False)
                file.write(line.encode() + b"\n")
        else:
            ids = pa.array([message.id for message in messages], pa.string())
            contents = pa.array([message.xml for message in messages], pa.binary())
            pq.write_table(pa.table({"id": ids, "xml": contents}), file)
        file.flush()
        os.fsync(file.fileno())


def _text(message: NewMessage) -> str | None:
    """A message as text, unless its bytes are something else, or wrong: the reader will say so."""
    if isinstance(message.xml, str):
        return message.xml
    try:
        encoding, mark = encoding_of(message.xml[:HEAD_BYTES])
        return message.xml.decode() if encoding == "utf-8" and not mark else None
    except (StreamError, UnicodeDecodeError):
        return None


def _name(draft: Path) -> str:
    """What a file is called once it has entered."""
    return draft.name[1:]


def _messages_in(name: str) -> int:
    """How many messages a file of an inbox has, as far as its name tells."""
    if name.startswith("."):
        return 0
    count = name.removeprefix(PREFIX).partition("-")[0] if name.startswith(PREFIX) else ""
    return int(count) if count.isdecimal() else 1
