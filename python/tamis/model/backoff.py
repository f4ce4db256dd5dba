"""Exponential backoff: the pause before a retry doubles each time, up to a longest one.

Backoff(first=1, longest=5): 1, 2, 4, 5, 5 …
"""


class Backoff:
    """The pauses, in seconds, between attempts."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = self._pause = first
        self._longest = longest

    def next(self) -> float:
        """The pause before the next attempt."""
        pause = self._pause
        self._pause = min(2 * pause, self._longest)
        return pause

    def reset(self) -> None:
        """Start again with the first pause, after a success."""
        self._pause = self._first
