"""What one broker with all subscriptions would deliver: the oracle of networks that route by interest."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import tamis
from tamis.network.interest import rows_of, text_of
from tamis.network.topology import Topology

QUERIES = [
    "//a",
    "//a[b = 1]",
    "//a[b = 2 and c]",
    "/r/a/b = 1",
    "/r/c or //a[b = 2]",
    "//c[@k = 'x']",
    "//c[not(@k)]",
    "not(//a)",
    "/r/*[b > 1][c]",
    "for $a in //a where $a/b = 2 return <m>{ $a/c }</m>",
]
MESSAGES = [
    "<r/>",
    "<r><a/></r>",
    "<r><a><b>1</b></a></r>",
    "<r><a><b>2</b></a></r>",
    "<r><a><b>2</b><c/></a></r>",
    "<r><c k='x'/></r>",
    "<r><c/><a><b>1</b></a></r>",
    "<q><b>1</b></q>",
]


@dataclass(frozen=True)
class Message:
    id: int
    tenant: str
    text: str
    root: str


class Broker(Protocol):
    """A broker of a network under test."""

    accepted: list[Message]
    """Messages that entered here and wait for a batch."""

    def subscribe(self, id: str, tenant: str, query: str) -> None: ...
    def unsubscribe(self, id: str) -> None: ...
    def is_established(self, id: str, root: str) -> bool: ...


class Network(Protocol):
    """A network under test."""

    topology: Topology
    delivered: Counter[tuple[int, str]]
    crossed: dict[tuple[str, str], list[Message]]
    """By sender and receiver."""
    budget: int | None
    """Of the rows that a broker advertises."""

    @property
    def brokers(self) -> Mapping[str, Broker]: ...
    def settle(self) -> None:
        """Everything, until nothing is left to do."""


@cache
def matches(query: str, message: str) -> bool:
    """Whether a query matches; the text of each is known."""
    index = tamis.Index(cache_bytes=0)
    index.insert(1, query)
    return bool(index.match(message.encode()))


class Oracle:
    """What one broker with all subscriptions would deliver, and what it must deliver at least."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.queries: dict[str, tuple[str, str, str]] = {}
        """By subscription, also removed ones: its broker, its tenant and its query."""
        self.active: set[str] = set()
        self.messages: list[Message] = []
        self.due: set[tuple[int, str]] = set()

    def subscribe(self, broker: str, tenant: str, query: str) -> None:
        id = f"s{len(self.queries)}"
        self.network.brokers[broker].subscribe(id, tenant, query)
        self.queries[id] = (broker, tenant, query)
        self.active.add(id)

    def unsubscribe(self, id: str) -> None:
        self.network.brokers[self.queries[id][0]].unsubscribe(id)
        self.active.discard(id)
        self.due = {(message, one) for message, one in self.due if one != id}

    def restored(self, kept: Collection[str], before: Collection[str], name: str) -> None:
        """The catalog of a broker was restored from its copy: what is not in that is gone."""
        self.due = {(at, id) for at, id in self.due if id not in before or id in kept}
        self.active = {id for id in self.active if self.queries[id][0] != name} | set(kept)

    def is_established(self, id: str, root: str) -> bool:
        return self.network.brokers[self.queries[id][0]].is_established(id, root)

    def publish(self, root: str, tenant: str, text: str) -> Message:
        message = Message(len(self.messages), tenant, text, root)
        self.messages.append(message)
        self.network.brokers[root].accepted.append(message)
        for id in self.active:
            if self.matches(id, message) and self.is_established(id, root):
                self.due.add((message.id, id))
        return message

    def matches(self, id: str, message: Message) -> bool:
        broker, tenant, query = self.queries[id]
        return tenant == message.tenant and self.reaches(broker, message) and matches(query, message.text)

    def reaches(self, broker: str, message: Message) -> bool:
        """Whether the tenant may cross all links on the way."""
        at, topology = message.root, self.network.topology
        while at != broker:
            onward = topology.toward(at, broker)
            link = next(one for one in topology.links_of(at) if one.other(at) == onward)
            if not link.carries(message.tenant):
                return False
            at = str(onward)
        return True

    def check(self) -> None:
        """At least what is due, at most what matches, and nothing twice."""
        delivered = self.network.delivered
        assert self.due - delivered.keys() == set()
        assert [one for one, count in delivered.items() if count > 1] == []
        wrong = [(at, id) for at, id in delivered if not self.matches(id, self.messages[at])]
        assert wrong == []


def check_quiet(network: Network, oracle: Oracle) -> None:
    """Everything is established, deliveries are a central broker's, and only what is wanted crosses."""
    for id in oracle.active:
        for root in network.brokers:
            assert oracle.is_established(id, root), (id, root)
    network.crossed.clear()
    network.delivered.clear()
    news = [
        oracle.publish(root, tenant, text) for root in network.brokers for tenant in "tu" for text in MESSAGES
    ]
    network.settle()
    central = {(message.id, id) for message in news for id in oracle.active if oracle.matches(id, message)}
    assert dict(network.delivered) == dict.fromkeys(central, 1)
    if network.budget is not None:
        return
    for (sender, receiver), crossed in network.crossed.items():
        behind = next(
            network.topology.behind(sender, link)
            for link in network.topology.links_of(sender)
            if link.other(sender) == receiver
        )
        wanted = [oracle.queries[id][1:] for id in oracle.active if oracle.queries[id][0] in behind]
        rows = [(tenant, text_of(row)) for tenant, query in wanted for row in rows_of(query)]
        for message in crossed:
            is_wanted = any(at == message.tenant and matches(text, message.text) for at, text in rows)
            assert is_wanted, (sender, receiver, message)
