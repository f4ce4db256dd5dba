"""Brokers in memory, linked by real logs: each forwards its arrivals, and records its deliveries."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from tamis.model.envelope import VERSION
from tamis.network.arrivals import ArrivedMessages
from tamis.network.link_end import MOST_HOPS, LinkEnd, open_links
from tamis.network.messages import MESSAGES
from tamis.network.topology import DirectoryCarrier, KafkaCarrier, Link, Topology

RECEIVED = datetime(2026, 1, 1, tzinfo=UTC)


def tree(folder: Path, *ends: str, tenants: Iterable[str] | None = None) -> Topology:
    """Brokers with one-letter names; `ab` links a and b."""
    barred = None if tenants is None else frozenset(tenants)
    carriers = [DirectoryCarrier(str(folder / "links" / pair)) for pair in ends]
    links = tuple(
        Link((pair[0], pair[1]), carrier, 1, barred) for pair, carrier in zip(ends, carriers, strict=True)
    )
    return Topology(tuple(sorted(set("".join(ends)))), links)


def kafka_tree(servers: str, topics: str, *ends: str, **client: str) -> Topology:
    """The same by Kafka."""
    carrier = KafkaCarrier(
        servers, topics, client={name.replace("_", "."): one for name, one in client.items()}
    )
    links = tuple(Link((pair[0], pair[1]), carrier) for pair in ends)
    return Topology(tuple(sorted(set("".join(ends)))), links)


def messages(root: str | None, *ids: str, tenant: str = "", hops: int = 0) -> pa.Table:
    """Messages as a batch of a broker has them."""
    rows = [message(root, one, f"<m id='{one}'/>", tenant=tenant, hops=hops) for one in ids]
    return pa.Table.from_pylist(rows, schema=MESSAGES)


def message(root: str | None, id: str, text: str, *, tenant: str = "", hops: int = 0) -> dict[str, object]:
    """A message that entered at a broker."""
    return {
        "version": VERSION,
        "tenant": tenant,
        "source": f"inbox-{root}",
        "id": id,
        "offset": id,
        "broker": root,
        "hops": hops,
        "received": RECEIVED,
        "xml": text.encode(),
    }


class MemoryBroker:
    """A broker. Its deliveries and its position in the arrivals survive a restart, like a checkpoint."""

    def __init__(self, topology: Topology, name: str, folder: Path, *, most_hops: int = MOST_HOPS) -> None:
        self.name = name
        self.state = folder / "state" / name
        self.delivered: Counter[str] = Counter()
        self.refused: list[tuple[str, str]] = []
        self._topology = topology
        self._most_hops = most_hops
        self._processed = 0
        self.ends: dict[str, LinkEnd] = {}
        self.restart()

    def restart(self) -> None:
        """Open everything again, as a new process does."""
        for end in self.ends.values():
            end.close()
        opened = open_links(self._topology, self.name, self.state, most_hops=self._most_hops, keep=0)
        self.ends = {end.status.neighbour: end for end in opened}
        self._arrived = ArrivedMessages(self.state)

    def publish(self, key: str, *ids: str, tenant: str = "") -> None:
        """Publish a batch of a source of the broker."""
        self._batch(key, messages(self.name, *ids, tenant=tenant))

    def process(self, *, done: bool = True) -> None:
        """A batch of arrivals; without `done`, it ends after its parcels are published, and is repeated."""
        end = self._arrived.next()
        for number in range(self._processed, end):
            if not (self.state / "arrivals" / f"{number:012}.arrow").exists():
                continue  # A killed process had processed it.
            table = self._arrived.read(number)
            sound = table.filter(table["code"].is_null()).select(MESSAGES.names)
            if not done:
                self.forward(f"arrivals:{number}", sound)
                return
            refused = table.filter(table["code"].is_valid())
            self.refused += [(row["id"], row["code"]) for row in refused.to_pylist()]
            self._batch(f"arrivals:{number}", sound)
            self._processed = number + 1
            self._arrived.remove(number + 1)

    def exchange(self) -> None:
        for end in self.ends.values():
            end.exchange()

    def forward(self, key: str, table: pa.Table) -> None:
        """Publish the parcels of a batch."""
        for end in self.ends.values():
            end.publish(key, table)

    def _batch(self, key: str, table: pa.Table) -> None:
        self.forward(key, table)
        self.delivered.update(str(one) for one in table["id"].to_pylist())


def settle(brokers: Iterable[MemoryBroker]) -> None:
    """Exchange and process until nothing changes."""
    brokers = list(brokers)
    before = None
    while (now := [(b.delivered.total(), [(e.status.sent, e.status.acknowledged) for e in b.ends.values()])
                   for b in brokers]) != before:  # fmt: skip
        before = now
        for broker in brokers:
            broker.exchange()
            broker.process()
