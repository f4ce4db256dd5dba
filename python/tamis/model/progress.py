"""Progress callbacks."""

from collections.abc import Callable

Report = Callable[[int, int], None]
"""Called from time to time with (done, total)."""
