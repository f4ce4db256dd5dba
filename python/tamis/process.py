"""A process, told apart from a later one that got its number."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this host."""

    pid: int
    born: str
    """The machine's boot and the clock tick of it: a number is given again, both together are not."""

    @classmethod
    def own(cls) -> Self:
        """The one that asks."""
        pid = os.getpid()
        return cls(pid, _born(pid) or "")

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        return _born(self.pid) == self.born


def _born(pid: int) -> str | None:
    """When a process began; none if there is no such process, or only its exit code is left."""
    try:
        stat = (PROC / str(pid) / "stat").read_text("utf-8", errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name, in brackets, may hold anything, blanks and brackets too.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}/{fields[18]}"
