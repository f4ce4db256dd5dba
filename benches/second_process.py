"""Another process that opens a snapshot: prints how many bytes of its memory are private to it.

`python -m benches.second_process SNAPSHOT MESSAGES.arrow`
"""

import re
import sys
from pathlib import Path

import pyarrow as pa

import tamis

SMAPS = Path("/proc/self/smaps_rollup")


def main(snapshot: str, messages: str) -> None:
    """Open the snapshot and match. Memory is counted after the imports that every process needs."""
    with pa.ipc.open_file(messages) as file:
        batch = file.read_all().column("message")
    tamis.Index().match_batch(batch)
    before = private_bytes()
    index = tamis.Index.open(Path(snapshot))
    index.match_batch(batch)
    print(private_bytes() - before)


def private_bytes() -> int:
    """Memory that was written to; mapped files are shared and do not count."""
    found = re.search(r"Private_Dirty:\s+(\d+) kB", SMAPS.read_text("ascii"))
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
