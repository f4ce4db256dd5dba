"""Wakes up the event streams that wait for a mailbox, and the sender of webhooks."""

import asyncio
from collections.abc import Iterable

Key = tuple[str, str]
"""A mailbox: tenant and subscriber."""

WEBHOOKS: Key = ("", "")
"""The queue of all webhooks, which has a key like a mailbox. No subscriber's name is empty."""


class Notifier:
    """One event for each mailbox with a waiting task. To be used on the event loop only."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Event] = {}

    def event_for(self, key: Key) -> asyncio.Event:
        """The event of the next notification. Get it before reading the mailbox, so that none is missed."""
        return self._waiting.setdefault(key, asyncio.Event())

    def notify(self, keys: Iterable[Key]) -> None:
        """Wake up the tasks that wait for these mailboxes."""
        for key in keys:
            event = self._waiting.pop(key, None)
            if event is not None:
                event.set()

    def notify_all(self) -> None:
        self.notify(list(self._waiting))
