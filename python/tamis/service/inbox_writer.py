"""Published messages → the inbox of a source. An accepted message is durable, and de-duplicated by its id.

    1. write the messages to a draft in the inbox, with a name that the job ignores, and fsync it
    2. one transaction records their ids and the name of the file: from here on they are accepted
    3. rename the draft: the job reads it

`recover` handles a crash: a draft that the catalog does not know (crash before 2) is deleted, one that it
knows (crash after 2) is renamed. Group commit: concurrent publishers share a file, a transaction and a sync.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.catalog.accepted import Accepted
from tamis.errors import TamisError
from tamis.model.headers import unpack_headers
from tamis.service.errors import ServiceError
from tamis.settings import Source
from tamis.sources.bytestream import StreamError
from tamis.sources.directory import DirectorySource
from tamis.sources.transcode import UTF8, encoding_of
from tamis.storage.files import fsync

log = logging.getLogger(__name__)

PREFIX = "published-"
"""The prefix of our files; the number of messages follows."""

COUNT_SECONDS = 0.5
"""How long a count of the waiting messages is cached."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to publish."""

    id: str
    xml: str | bytes
    """Text, or bytes that declare their own encoding."""
    headers: str | None = None
    """Its headers as they are stored."""


@dataclass(slots=True, eq=False)
class _Request:
    """The messages of one publisher, and the result of accepting them."""

    source: DirectorySource
    messages: Sequence[NewMessage]
    fresh: set[str] = field(default_factory=set)
    """The ids that were not known."""
    done: bool = False
    error: Exception | None = None


class InboxWriter:
    """Writes to the inboxes of a service. Only one process at a time may write to an inbox."""

    def __init__(
        self,
        accepted: Accepted,
        sources: Iterable[Source],
        backlog: int,
        read_until: Callable[[str], float] = lambda source: 0.0,
    ) -> None:
        """`read_until`: by the name of a source, the time in seconds since 1970 up to which it was read."""
        self._accepted = accepted
        self._read_until = read_until
        # With after = "keep" files stay in the inbox, and the backlog cannot be counted.
        self.sources = [
            source for source in sources if isinstance(source, DirectorySource) and source.after != "keep"
        ]
        self._backlog = backlog
        self._queue: list[_Request] = []
        self._queue_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._renamed: dict[Path, list[str]] = {}
        """Renamed files by inbox. Once the folder is synced, the catalog can forget them."""
        self._accepted_drafts: list[Path] = []
        """Accepted files that are not renamed yet."""
        self._counts: dict[str, tuple[float, int]] = {}
        for source in self.sources:
            source.path.mkdir(parents=True, exist_ok=True)

    def source(self, tenant: str, name: str | None = None) -> DirectorySource:
        """The source of a tenant to publish to: the named one, or the first."""
        for source in self.sources:
            if source.tenant == tenant and name in (None, source.name):
                return source
        named = "" if name is None else f" {name}"
        whose = f"tenant {tenant} has" if tenant else "there is"
        raise ServiceError(
            "no-source", f"{whose} no inbox{named} to publish to: see [[source]] in the settings"
        )

    def publish(self, source: DirectorySource, messages: Sequence[NewMessage]) -> set[str]:
        """Accept messages; returns the ids of the new ones."""
        self._check(source, messages)
        request = _Request(source, messages)
        with self._queue_lock:
            self._queue.append(request)
        with self._write_lock:
            # The previous writer may have written this request too.
            if not request.done:
                with self._queue_lock:
                    group, self._queue = self._queue, []
                self._store(group)
        if request.error is not None:
            raise request.error
        return request.fresh

    def waiting(self, source: DirectorySource) -> int:
        """Estimate how many messages in an inbox are not yet read."""
        at, count = self._counts.get(source.name, (-1.0, 0))
        if not 0 <= time.monotonic() - at <= COUNT_SECONDS:
            count = self._count(source)
            self._counts[source.name] = time.monotonic(), count
        return count

    def _count(self, source: DirectorySource) -> int:
        # The files of a batch stay in the inbox until the next batch, though they are read.
        until = self._read_until(source.name)
        count = 0
        with os.scandir(source.path) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    if not until or file.stat().st_ctime > until:
                        count += _messages_in(file.name)
        return count

    def recover(self) -> None:
        """Rename or delete the drafts that a crash left behind. To be called before the first `publish`."""
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
            reason = f"{behind} messages wait in the inbox, {self._backlog} are allowed: try again later"
            raise ServiceError("backlog", reason, value=behind, limit=self._backlog)

    def _store(self, group: list[_Request]) -> None:
        """Accept the requests of a group; if it fails, all of them fail."""
        error: Exception | None = ServiceError("not-stored", "nothing was accepted; try again later")
        try:
            self._accept(group)
            error = None
        except TamisError as known:
            error = known
        except OSError as failed:
            code = "disk-full" if failed.errno in _DISK_FULL else "not-stored"
            error = ServiceError(code, f"nothing was accepted: {failed.strerror}; try again later")
        finally:
            # Also after an unexpected error no request may look accepted.
            for request in group:
                request.error = error
                request.done = True

    def _accept(self, group: list[_Request]) -> None:
        self._rename_accepted()
        fresh = self._new_messages(group)
        if not fresh:
            return
        drafts: list[Path] = []
        try:
            for source, messages in fresh:
                for suffix, some in _by_file_kind(messages):
                    draft = source.path / f".{PREFIX}{len(some)}-{uuid.uuid4().hex}.{suffix}"
                    drafts.append(draft)
                    _write(draft, some)
                fsync(source.path)
            ids = [(source.name, message.id) for source, messages in fresh for message in messages]
            # The sync above covers the files that were renamed before.
            entered = [name for source, _ in fresh for name in self._renamed.get(source.path, ())]
            self._accepted.accept(ids, [_name(draft) for draft in drafts], entered)
            for source, _ in fresh:
                self._renamed.pop(source.path, None)
        except BaseException:
            with contextlib.suppress(TamisError, OSError):
                self._resolve(drafts)
            raise
        self._accepted_drafts += drafts
        self._rename_accepted()
        for source, messages in fresh:
            at, count = self._counts.get(source.name, (0.0, 0))
            self._counts[source.name] = at, count + len(messages)

    def _new_messages(self, group: list[_Request]) -> list[tuple[DirectorySource, list[NewMessage]]]:
        """The messages that are not known, by source; also noted in each request."""
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

    def _rename_accepted(self) -> None:
        """Rename accepted drafts. What fails is retried by the next publisher, or at the next start."""
        waiting, self._accepted_drafts = self._accepted_drafts, []
        for draft in waiting:
            try:
                self._rename(draft)
            except OSError as error:
                log.error("%s is accepted and cannot be renamed: %s", draft, error)
                self._accepted_drafts.append(draft)

    def _resolve(self, drafts: Sequence[Path]) -> None:
        """Rename the drafts that the catalog knows, and delete the others."""
        if drafts:
            entering = self._accepted.entering()
            for draft in drafts:
                if _name(draft) in entering:
                    log.info("recovered %s", _name(draft))
                    self._rename(draft)
                else:
                    draft.unlink(missing_ok=True)

    def _rename(self, draft: Path) -> None:
        """Give a draft its name. If a crash undoes the rename, the catalog still knows the file."""
        draft.rename(draft.with_name(_name(draft)))
        self._renamed.setdefault(draft.parent, []).append(_name(draft))


def _by_file_kind(messages: Sequence[NewMessage]) -> Iterator[tuple[str, list[NewMessage]]]:
    """Messages by the kind of their file: text as JSON lines, other bytes as Parquet."""
    texts, others = [], []
    for message in messages:
        text = _text(message)
        if text is None:
            others.append(message)
        else:
            texts.append(replace(message, xml=text))
    if texts:
        yield "jsonl", texts
    if others:
        yield "parquet", others


def _write(draft: Path, messages: Sequence[NewMessage]) -> None:
    """Write a file and sync it."""
    with draft.open("xb") as file:
        if draft.suffix == ".jsonl":
            for message in messages:
                line: dict[str, Any] = {"id": message.id, "xml": message.xml}
                if message.headers is not None:
                    line["headers"] = unpack_headers(message.headers)
                file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        else:
            ids = pa.array([message.id for message in messages], pa.string())
            contents = pa.array([message.xml for message in messages], pa.binary())
            headers = pa.array([message.headers for message in messages], pa.string())
            pq.write_table(pa.table({"id": ids, "headers": headers, "xml": contents}), file)
        file.flush()
        os.fsync(file.fileno())


def _text(message: NewMessage) -> str | None:
    """A message as text; None if it is not UTF-8, or malformed: the reader reports that."""
    if isinstance(message.xml, str):
        return message.xml
    try:
        encoding, mark = encoding_of(message.xml)
        return message.xml.decode() if encoding == UTF8 and not mark else None
    except (StreamError, UnicodeDecodeError):
        return None


def _name(draft: Path) -> str:
    """The name of a draft after the rename."""
    return draft.name[1:]


def _messages_in(name: str) -> int:
    """How many messages a file has, by its name; 1 if it is not one of ours."""
    if name.startswith("."):
        return 0
    count = name.removeprefix(PREFIX).partition("-")[0] if name.startswith(PREFIX) else ""
    return int(count) if count.isdecimal() else 1
