"""How long work reports its progress."""

from collections.abc import Callable

Report = Callable[[int, int], None]
"""Called now and then with how many are done, and how many there are to do."""
