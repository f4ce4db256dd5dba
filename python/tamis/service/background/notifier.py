"""Wakes up who waits for a mailbox: event streams, and the sender of webhooks."""

import asyncio
from collections.abc import Iterable

Key = tuple[str, str]
"""A mailbox: tenant and subscriber."""

WEBHOOKS: Key = ("", "")
"""The queue of all webhooks, which has a key like a mailbox. No subscriber's name is empty."""


class Notifier:
    """One event for each mailbox that somebody waits for. To be used on the event loop only."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Event] = {}

    def event_for(self, key: Key) -> asyncio.Event:
        """The event of the next notification. Get it before you read the mailbox: then you miss nothing."""
        return self._waiting.setdefault(key, asyncio.Event())

    def notify(self, keys: Iterable[Key]) -> None:
        """Wake up who waits for these mailboxes."""
        for key in keys:
            event = self._waiting.pop(key, None)
            if event is not None:
                event.set()

    def notify_all(self) -> None:
        self.notify(list(self._waiting))
