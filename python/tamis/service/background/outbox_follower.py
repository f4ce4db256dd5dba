"""The outbox → mailboxes: imports each published batch exactly once, and notifies waiting tasks.

A poll does not list the outbox, which grows: it probes for the next manifests of each known checkpoint
(`c-7.json` after `c-6.json`). A full listing now and then finds new checkpoints.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tamis.catalog.mailbox import Mailbox
from tamis.errors import TamisError
from tamis.model.webhook import webhook_of
from tamis.service.background.notifier import WEBHOOKS, Key, Notifier
from tamis.service.background.polling import poll
from tamis.service.threads import in_thread
from tamis.settings import Settings
from tamis.sinks.outbox import Outbox
from tamis.sinks.published import Publication

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1

LISTING_SECONDS = 5.0
"""Seconds between two full listings of the outbox."""

PROBED_BATCHES = 20
"""How many batch numbers are probed after the last one: a batch without deliveries leaves a gap."""


class OutboxFollower:
    """Imports the batches of an outbox into mailboxes."""

    def __init__(self, outbox: Outbox, mailbox: Mailbox, excluded: frozenset[str]) -> None:
        """`excluded`: delivery targets with a separate sink; they get no mailbox."""
        self._outbox = outbox
        self._mailbox = mailbox
        self._excluded = excluded
        self._seen = mailbox.imported_manifests()
        self._last: dict[str, int] = {}
        """The last imported batch of each checkpoint."""
        for name in self._seen:
            self._advance(name)
        self._listed = -LISTING_SECONDS
        self.failure: TamisError | None = None
        """The error because of which mailboxes are behind; None if they are not."""

    @classmethod
    def of(cls, settings: Settings, mailbox: Mailbox) -> "OutboxFollower | None":
        """A follower of the outbox that has all deliveries; None if there is no such outbox."""
        sink = settings.whole_outbox
        if sink is None:
            return None
        excluded = frozenset(target for sink in settings.sinks for target in sink.targets or ())
        return cls(Outbox(sink.path, sink.form), mailbox, excluded)

    def poll(self) -> set[Key]:
        """Import new batches; returns the keys of the mailboxes that got a delivery."""
        changed: set[Key] = set()
        for name in self._unseen_manifests():
            publication = self._outbox.read_manifest(name)
            if publication is None:
                continue
            if publication.form == "xml":
                log.warning("%s was published as XML: its deliveries are in the outbox only", name)
            else:
                rows = self._rows(publication, changed)
                self._mailbox.store(name, rows)
                # If another process imported the batch, we still read the rows to know whom to notify.
                deque(rows, maxlen=0)
            self._seen.add(name)
            self._advance(name)
        return changed

    def delete_older(self, before: datetime) -> int:
        """Delete batches of the outbox that are older than a time and imported; returns how many."""
        # In this order: a batch that is published and imported in between is in neither set.
        imported = self._mailbox.imported_manifests()
        there = set(self._outbox.manifests())
        gone = [name for name in self._outbox.older_than(before) if name in imported]
        for name in gone:
            self._outbox.remove(name)
        # Also those that were deleted before a crash, or by another process.
        forgotten = (imported - there).union(gone)
        if forgotten:
            self._mailbox.forget_manifests(forgotten)
        self._seen.difference_update(forgotten)
        return len(gone)

    def _rows(self, publication: Publication, changed: set[Key]) -> Iterator[dict[str, Any]]:
        for batch in self._outbox.read(publication):
            for row in batch.to_pylist():
                if row["delivery_target"] not in self._excluded:
                    sent = webhook_of(row["delivery_target"]) is not None
                    changed.add(WEBHOOKS if sent else (row["tenant"], row["subscriber"]))
                    yield row

    def _unseen_manifests(self) -> Iterator[str]:
        """Names of manifests to probe, of known checkpoints; now and then all new ones of a listing."""
        now = time.monotonic()
        if not self._last or now - self._listed >= LISTING_SECONDS:
            self._listed = now
            yield from [name for name in self._outbox.manifests() if name not in self._seen]
        for checkpoint, last in list(self._last.items()):
            for number in range(last + 1, last + 1 + PROBED_BATCHES):
                yield f"{checkpoint}-{number}.json"

    def _advance(self, name: str) -> None:
        checkpoint, _, number = name.removesuffix(".json").rpartition("-")
        self._last[checkpoint] = max(int(number), self._last.get(checkpoint, -1))

    async def run(self, notifier: Notifier) -> None:
        """Poll without end."""

        async def poll_and_notify() -> None:
            try:
                notifier.notify(await in_thread(self.poll))
                self.failure = None
            except TamisError as error:
                self.failure = error
                raise
            except Exception:
                # Unexpected: the service restarts this task, and is not ready until it works.
                self.failure = TamisError(
                    "mailboxes-failed", "an unexpected error; see the log of the service"
                )
                raise

        await poll(poll_and_notify, interval=POLL_SECONDS, failing="mailboxes are behind")
