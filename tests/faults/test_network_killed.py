"""Three brokers, each a job, are killed hard: what is established is delivered once, wherever it entered."""

import itertools
import os
import random
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tamis.catalog import Catalog
from tamis.model.subscription import NewSubscription
from tests.helpers.jobs import Folder, Job, running, until_running
from tests.helpers.network_file import network_file
from tests.helpers.waiting import until

KILLS = int(os.environ.get("TAMIS_KILLS") or 3)

BROKER = """
[broker]
name = "{name}"
network = "../network.toml"
[[source]]
name = "in-{name}"
path = "inbox"
"""
SPARK = '[spark]\nmaster = "local[1]"\nconfig = { "spark.driver.memory" = "600m" }\n'


class Network:
    """The brokers, and what must be delivered."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        (path / "network.toml").write_text(network_file("ab", "bc"))
        self.folders = {name: Folder(path / name, BROKER.format(name=name), SPARK) for name in "abc"}
        self.catalogs = {
            name: stack.enter_context(Catalog(folder.catalog)) for name, folder in self.folders.items()
        }
        self.stacks = {name: stack.enter_context(ExitStack()) for name in self.folders}
        self.jobs: dict[str, Job] = {}
        self.wanted: dict[str, int] = {}
        """By subscription: the number of its messages."""
        self.expected: Counter[tuple[str, str]] = Counter()
        self._messages = itertools.count()

    def start(self, name: str) -> None:
        self.jobs[name] = self.stacks[name].enter_context(running(self.folders[name]))

    def subscribe(self, name: str, number: int) -> None:
        """Subscribe, and wait until it is established everywhere."""
        catalog = self.catalogs[name]
        one = catalog.add(NewSubscription("bob", f"/m[@n = {number}]", f"s{len(self.wanted)}-{name}"))
        until(lambda: not catalog.routes.established_of(one, "abc").missing, f"{one.id} to be established")
        self.wanted[one.id] = number

    def publish(self, name: str, number: int) -> None:
        id = f"m{next(self._messages)}"
        self.folders[name].publish(f"{id}.xml", f"<m n='{number}'/>".encode())
        matching = (one for one, wanted in self.wanted.items() if wanted == number)
        self.expected.update((f"{id}.xml", one) for one in matching)

    def delivered(self) -> Counter[tuple[str, str]]:
        rows = (row for folder in self.folders.values() for row in folder.deliveries())
        return Counter((row["message"], row["subscription"]) for row in rows)


def test_nothing_is_lost_or_doubled_in_a_network_of_killed_brokers(tmp_path: Path) -> None:
    draw = random.Random(KILLS)
    with ExitStack() as stack:
        network = Network(tmp_path, stack)
        for name in network.folders:
            network.start(name)
        for job in network.jobs.values():
            until_running(job)
        network.subscribe("c", 0)
        network.subscribe("a", 1)
        for kill in range(KILLS):
            victim = "bac"[kill % 3]
            for name in "abc":
                for number in range(4):
                    network.publish(name, number)
            if draw.random() < 0.7:
                until(network.delivered, "a delivery")
            network.jobs[victim].kill()
            for name in "abc":
                network.publish(name, draw.randrange(4))
            network.start(victim)
            network.subscribe("abc"[kill % 3], 2 + kill % 2)
            network.publish("c", 2 + kill % 2)
        until(lambda: network.expected <= network.delivered(), "all deliveries")
        for name, job in network.jobs.items():
            assert job.stop() == 0, network.folders[name].log.read_text()
        # A subscription may get more than is due: what was on its way when it was established.
        delivered = network.delivered()
        assert [one for one, count in delivered.items() if count > 1] == []
        assert not any(folder.letters() for folder in network.folders.values())
