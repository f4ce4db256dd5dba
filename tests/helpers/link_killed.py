"""Kills a broker that sends or receives at each of its file operations, and checks what is left.

Run as `python -m tests.helpers.link_killed sender|receiver`; prints how often it killed.
"""

import sys
from collections import Counter
from pathlib import Path

from tamis.network.topology import Topology
from tests.helpers.killing import kill_at_each_step
from tests.helpers.link_ends import MemoryBroker, settle, tree

BATCHES = {f"inbox-a:{number}": (f"m{number}", f"n{number}") for number in range(3)}
EVERYTHING = Counter(one for ids in BATCHES.values() for one in ids)


def network(here: Path) -> Topology:
    return tree(here, "ab", "bc")


def send(here: Path) -> None:
    """Two batches, the acknowledgement of the first, which deletes it, a new log, and a batch in that."""
    topology = network(here)
    a, b = MemoryBroker(topology, "a", here), MemoryBroker(topology, "b", here)
    for key, ids in BATCHES.items():
        a.publish(key, *ids)
        if key.endswith("0"):
            b.exchange()
            a.exchange()
        if key.endswith("1"):
            next(iter(a.ends.values()))._carrier.log.begin("a test")


def receive(here: Path) -> None:
    """B stores parcels of A, acknowledges them, and forwards their messages to C."""
    topology = network(here)
    a = MemoryBroker(topology, "a", here)
    for key, ids in BATCHES.items():
        a.publish(key, *ids)
    b = MemoryBroker(topology, "b", here)
    b.exchange()
    b.process()
    b.exchange()


def see(here: Path, _: int) -> None:
    """All batches are published, the known ones again; then every broker has every message once."""
    topology = network(here)
    brokers = [MemoryBroker(topology, name, here) for name in "abc"]
    for key, ids in BATCHES.items():
        brokers[0].publish(key, *ids)
    # B repeats its last batch, unless it had processed it.
    settle(brokers)
    for broker in brokers:
        states = [(end.status.state, end.status.reason) for end in broker.ends.values()]
        assert states == [("up", "")] * len(broker.ends), states
    assert brokers[0].delivered == EVERYTHING
    assert brokers[2].delivered == EVERYTHING, brokers[2].delivered


if __name__ == "__main__":
    work = {"sender": send, "receiver": receive}[sys.argv[1]]
    print(kill_at_each_step(work, see))
