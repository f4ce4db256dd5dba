"""The memory of the service's processes under load, for as long as `TAMIS_MINUTES` says."""

import asyncio
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benches.running.load import Load
from benches.running.serve import ServeWorkload
from benches.running.service import ServiceFolder
from tamis.bench.measure import build

MINUTES = float(os.environ.get("TAMIS_MINUTES") or 30)

RATE = 100
"""Messages a second."""

WARM_UP = 0.2
"""The share of the time in which caches, heaps and pools may fill."""

GROWTH = 0.15
"""The permitted growth of a process after the warm-up, as a share …"""

SLACK = 48 << 20
"""… and in bytes. Both are less than 1 KiB for each message of 30 minutes: a leak of a message shows."""


def tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree(int(child))


def resident(pid: int) -> dict[int, int]:
    """Bytes in memory of each process of the service, by its id; files that are mapped are not counted."""
    found = {}
    for one in tree(pid):
        lines = Path(f"/proc/{one}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        found[one] = int(fields.get("RssAnon", "0 kB").split()[0]) << 10
    return found


@pytest.mark.soak
def test_memory_does_not_grow_under_load(tmp_path: Path) -> None:
    workload = ServeWorkload(subscriptions=5_000, subscribers=5)
    queries = workload.queries()
    folder = ServiceFolder.make(tmp_path / "service", queries, workload.subscribers)
    with folder.running() as service:

        async def load() -> tuple[dict[int, int], dict[int, int]]:
            index, _, _ = build(queries, list(islice(workload.messages(), 100)))
            async with Load(folder, index, workload.messages()) as given:
                seconds = MINUTES * 60
                await given.publish(RATE, seconds * WARM_UP, lambda *_: None)
                before = resident(service.process.pid)
                await given.publish(RATE, seconds * (1 - WARM_UP), lambda *_: None)
                assert given.strange == 0
                return before, resident(service.process.pid)

        before, after = asyncio.run(load())
    shown = {pid: (bytes_ >> 20, after.get(pid, 0) >> 20) for pid, bytes_ in before.items()}
    print(f"\nMiB of each process after the warm-up and at the end of {MINUTES:g} minutes: {shown}")
    # Workers of Spark may be replaced; the service, the job and its JVM may not.
    assert len(before.keys() & after.keys()) >= 3
    for pid in before.keys() & after.keys():
        assert after[pid] <= before[pid] * (1 + GROWTH) + SLACK, shown
