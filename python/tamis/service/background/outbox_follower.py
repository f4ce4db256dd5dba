"""The outbox → mailboxes: each publication once, and those who wait are told."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from tamis.catalog.mailbox import Mailbox
from tamis.errors import TamisError
from tamis.model.webhook import webhook_of
from tamis.service.threads import in_thread
from tamis.settings import Settings
from tamis.sinks.outbox import Outbox
from tamis.sinks.published import Publication

log = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds between two looks at the outbox."""

LISTING = 5.0
"""Seconds between two looks at the whole outbox: it grows, and a listing of it takes its time."""

AHEAD = 20
"""So many batches of a checkpoint are looked for meanwhile; a batch that delivers nothing leaves a gap."""

PAUSE = 5.0
"""Seconds before the next try, when something fails."""


Key = tuple[str, str]
"""A mailbox: tenant and subscriber."""

OUTGOING: Key = ("", "")
"""What waits for webhooks, all of it: rung for as for a mailbox. No subscriber's name is empty."""


class Notifier:
    """Rings for a mailbox when there may be something new; only to be used on the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Event] = {}

    def event_for(self, key: Key) -> asyncio.Event:
        """The next ringing for a mailbox: take it before looking, then nothing is missed."""
        return self._waiting.setdefault(key, asyncio.Event())

    def notify(self, keys: Iterable[Key]) -> None:
        for key in keys:
            ticket = self._waiting.pop(key, None)
            if ticket is not None:
                ticket.set()

    def notify_all(self) -> None:
        self.notify(list(self._waiting))


class OutboxFollower:
    """Follows an outbox."""

    def __init__(self, outbox: Outbox, mailbox: Mailbox, elsewhere: frozenset[str]) -> None:
        """`elsewhere`: delivery targets that have a sink of their own, and wait in no mailbox."""
        self._outbox = outbox
        self._mailbox = mailbox
        self._elsewhere = elsewhere
        self._seen = mailbox.imported_manifests()
        self._last: dict[str, int] = {}
        """The last batch that was seen of each checkpoint."""
        for name in self._seen:
            self._note(name)
        self._listed = -LISTING
        self.failure: TamisError | None = None
        """Why mailboxes are not up to date."""

    @classmethod
    def of(cls, settings: Settings, mailbox: Mailbox) -> "OutboxFollower | None":
        """That of the outbox which has all deliveries as rows; none if there is no such outbox."""
        sink = settings.whole_outbox
        if sink is None:
            return None
        elsewhere = frozenset(target for sink in settings.sinks for target in sink.targets or ())
        return cls(Outbox(sink.path, sink.form), mailbox, elsewhere)

    def poll(self) -> set[Key]:
        """Take what is new; the mailboxes that got something."""
        heard: set[Key] = set()
        for name in self._new():
            publication = self._outbox.read_manifest(name)
            if publication is None:
                continue
            if publication.form == "xml":
                log.warning("%s was published as XML: its deliveries are in the outbox only", name)
            else:
                rows = self._rows(publication, heard)
                self._mailbox.store(name, rows)
                # Who waits is told also where another service was quicker, and left the rows to us.
                deque(rows, maxlen=0)
            self._seen.add(name)
            self._note(name)
        return heard

    def delete_older(self, before: datetime) -> int:
        """Remove publications of the outbox from before a time that are in mailboxes; how many."""
        # In this order: what is published and taken meanwhile is not among the first.
        taken = self._mailbox.imported_manifests()
        there = set(self._outbox.manifests())
        gone = [name for name in self._outbox.older_than(before) if name in taken]
        for name in gone:
            self._outbox.remove(name)
        # Also those that were removed before a crash, or by somebody else.
        forgotten = (taken - there).union(gone)
        if forgotten:
            self._mailbox.forget_manifests(forgotten)
        self._seen.difference_update(forgotten)
        return len(gone)

    def _rows(self, publication: Publication, heard: set[Key]) -> Iterator[dict[str, Any]]:
        for batch in self._outbox.read(publication):
            for row in batch.to_pylist():
                if row["delivery_target"] not in self._elsewhere:
                    sent = webhook_of(row["delivery_target"]) is not None
                    heard.add(OUTGOING if sent else (row["tenant"], row["subscriber"]))
                    yield row

    def _new(self) -> Iterator[str]:
        """Manifests to look at: the next ones of known checkpoints, and now and then all unseen ones."""
        now = time.monotonic()
        if not self._last or now - self._listed >= LISTING:
            self._listed = now
            yield from [name for name in self._outbox.manifests() if name not in self._seen]
        for checkpoint, last in list(self._last.items()):
            for number in range(last + 1, last + 1 + AHEAD):
                yield f"{checkpoint}-{number}.json"

    def _note(self, name: str) -> None:
        checkpoint, _, number = name.removesuffix(".json").rpartition("-")
        self._last[checkpoint] = max(int(number), self._last.get(checkpoint, -1))

    async def run(self, notifier: Notifier) -> None:
        """Follow for ever."""
        while True:
            try:
                notifier.notify(await in_thread(self.poll))
                self.failure = None
            except TamisError as error:
                if self.failure is None:
                    log.error("mailboxes are not up to date: %s", error)
                self.failure = error
            except Exception:
                # Not foreseen: the service begins it again, and is not ready until it works.
                self.failure = TamisError("mailboxes-failed", "mailboxes are not filled; the log says why")
                raise
            await asyncio.sleep(PAUSE if self.failure else LOOK)
