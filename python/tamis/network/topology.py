"""Brokers and the links between them, from `network.toml`.

    number = 1                       # the default; raise it with each change of the network

    [[broker]]
    name = "london"

    [[link]]
    ends = ["london", "paris"]
    carrier = "directory"            # the default
    path = "links/london-paris"      # relative to the file
    # or: carrier = "kafka", servers = "kafka:9092"
    cost = 1
    tenants = ["acme"]               # default: all

    [limits]                         # of messages, at least, at every broker
    document = "20MiB"

The links form a tree: between two brokers there is exactly one way. All errors of a file are found at once,
each with a code and its place. Cost: linear in the size of the file.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from tamis.errors import TamisError
from tamis.model.matching import Limits
from tamis.model.sizes import size_of

DEFAULT_FILE = "network.toml"

HIGHEST_COST = 1_000_000

FIRST = 1
"""The number of a network's first topology."""

HIGHEST_NUMBER = 1_000_000_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_BROKER_KEYS = ("name",)
_LINK_KEYS = ("ends", "carrier", "cost", "tenants")
_CARRIERS = {"directory": ("path",), "kafka": ("servers", "topics", "retention", "client")}
"""By carrier: its own keys of a link."""

RETENTION = 7 * 86_400.0
"""Seconds for which a topic keeps parcels."""

_TOPICS = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of a file: `place` is a table and its key, such as `[[link]] 2: ends`."""

    code: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.code}: {self.reason}"


class TopologyError(TamisError):
    """An invalid `network.toml`; the code and the reason are those of its first problem."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        first, more = problems[0], len(problems) - 1
        others = f" (and {more} more: `tamis network check`)" if more else ""
        super().__init__(first.code, f"{file}: {first.place}: {first.reason}{others}")
        self.problems = problems


@dataclass(frozen=True, slots=True)
class DirectoryCarrier:
    """A directory that both ends can write, or a URL of a file system."""

    path: str

    kind = "directory"

    @property
    def location(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class KafkaCarrier:
    """A topic for each direction, with one partition."""

    servers: str
    topics: str = "tamis"
    """The topics are called `TOPICS.SENDER.RECEIVER`."""
    retention: float = RETENTION
    """Seconds, of a topic that tamis creates."""
    client: Mapping[str, str] = field(default_factory=dict, hash=False)
    """More settings of Kafka's clients, such as those for TLS and authentication."""

    kind = "kafka"

    @property
    def location(self) -> str:
        return f"{self.servers}/{self.topics}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two brokers."""

    ends: tuple[str, str]
    carrier: DirectoryCarrier | KafkaCarrier
    cost: int = 1
    tenants: frozenset[str] | None = None
    """The tenants whose messages may cross; None: all."""

    @property
    def name(self) -> str:
        """The names of both ends, in alphabetical order; a broker's name has no dot."""
        return ".".join(sorted(self.ends))

    def other(self, broker: str) -> str:
        """The broker at the other end."""
        return self.ends[1] if broker == self.ends[0] else self.ends[0]

    def carries(self, tenant: str) -> bool:
        return self.tenants is None or tenant in self.tenants


@dataclass(frozen=True)
class Topology:
    """A tree of brokers."""

    brokers: tuple[str, ...]
    links: tuple[Link, ...]
    limits: Limits = field(default_factory=Limits)
    """A message within these is accepted by every broker."""
    number: int = FIRST
    """Of this topology: a later one has a higher number."""

    def links_of(self, broker: str) -> list[Link]:
        """The links of a broker, in the order of the file."""
        return [link for link in self.links if broker in link.ends]

    def behind(self, broker: str, link: Link) -> frozenset[str]:
        """The brokers that a broker reaches through one of its links."""
        return self._behind[broker, link.other(broker)]

    def toward(self, broker: str, target: str) -> str | None:
        """The neighbour of `broker` on the way to `target`; None if it is `broker` itself or unknown."""
        for link in self.links_of(broker):
            if target in self.behind(broker, link):
                return link.other(broker)
        return None

    @cached_property
    def _behind(self) -> dict[tuple[str, str], frozenset[str]]:
        """By a broker and its neighbour: the brokers on the neighbour's side."""
        found: dict[tuple[str, str], frozenset[str]] = {}
        for link in self.links:
            for start in link.ends:
                side, waiting = {start}, [start]
                while waiting:
                    at = waiting.pop()
                    nexts = {one.other(at) for one in self.links_of(at) if one is not link} - side
                    side |= nexts
                    waiting.extend(nexts)
                found[link.other(start), start] = frozenset(side)
        return found


def read_topology(file: Path) -> Topology:
    """The topology of a file; `TopologyError` has all its problems."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TopologyError(str(file), [Problem("bad-toml", str(file), str(error))]) from error
    except OSError as error:
        raise TopologyError(str(file), [Problem("no-network", str(file), str(error.strerror))]) from error
    parser = _Parser(file.parent)
    topology = parser.topology(content)
    if parser.problems:
        raise TopologyError(str(file), parser.problems)
    return topology


class _Parser:
    """Collects the problems of a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.problems: list[Problem] = []

    def topology(self, content: Mapping[str, Any]) -> Topology:
        self._known(content, ("number", "broker", "link", "limits"), "the file")
        number = content.get("number", FIRST)
        if isinstance(number, bool) or not isinstance(number, int) or not FIRST <= number <= HIGHEST_NUMBER:
            reason = (
                f"a number of a topology is a whole number from {FIRST} to {HIGHEST_NUMBER}, not {number!r}"
            )
            self._problem("bad-value", "number", reason)
        brokers = self._brokers(self._tables(content, "broker"))
        links = self._links(self._tables(content, "link"), brokers)
        limits = self._limits(content.get("limits", {}))
        if not brokers and not self.problems:
            self._problem("no-broker", "the file", "a network has at least one [[broker]]")
        if not self.problems:
            self._check_tree(brokers, links)
            self._check_places(links)
        return Topology(tuple(brokers), tuple(links.values()), limits, number)

    def _problem(self, code: str, place: str, reason: str) -> None:
        self.problems.append(Problem(code, place, reason))

    def _known(self, table: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
        for key in table.keys() - set(keys):
            self._problem("unknown-key", place, f"unknown key {key!r}; the keys are {', '.join(keys)}")

    def _tables(self, content: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
        tables = content.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._problem("bad-value", name, f"write [[{name}]], once for each")
            return []
        return [(f"[[{name}]] {number}", table) for number, table in enumerate(tables, 1)]

    def _limits(self, table: Any) -> Limits:
        """The limits, with sizes as numbers or as texts; the defaults if they are wrong."""
        if not isinstance(table, dict):
            self._problem("bad-value", "[limits]", "write [limits], a table")
            return Limits()
        known = {one.name: one.default for one in fields(Limits)}
        self._known(table, tuple(known), "[limits]")
        values: dict[str, Any] = {}
        for name in known.keys() & table.keys():
            try:
                value = table[name]
                values[name] = size_of(value) if isinstance(value, str) else value
                is_switch = isinstance(known[name], bool)
                if isinstance(values[name], bool) != is_switch or not isinstance(values[name], int):
                    kind = "true or false" if is_switch else "a whole number, or a size such as '20MiB'"
                    raise ValueError(f"{kind} is needed, not {value!r}")
            except ValueError as error:
                self._problem("bad-value", f"[limits]: {name}", str(error))
                values.pop(name, None)
        return Limits(**values)

    def _brokers(self, tables: list[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
        """The place of each broker by its name."""
        found: dict[str, str] = {}
        for place, table in tables:
            self._known(table, _BROKER_KEYS, place)
            name = table.get("name")
            if name is None:
                self._problem("missing-key", place, "name is needed")
            elif not isinstance(name, str) or not _NAME.fullmatch(name):
                reason = (
                    f"{name!r} is no name: up to 63 letters, digits, `_` and `-`, a letter or digit first"
                )
                self._problem("bad-name", f"{place}: name", reason)
            elif name in found:
                self._problem("two-brokers", f"{place}: name", f"{name!r} is also the name of {found[name]}")
            else:
                found[name] = place
        return found

    def _links(
        self, tables: list[tuple[str, Mapping[str, Any]]], brokers: Mapping[str, str]
    ) -> dict[str, Link]:
        """The links by their places."""
        found: dict[str, Link] = {}
        for place, table in tables:
            before = len(self.problems)
            ends = self._ends(table, brokers, place)
            carrier = self._carrier(table, place)
            cost, tenants = table.get("cost", 1), table.get("tenants")
            if isinstance(cost, bool) or not isinstance(cost, int) or not 1 <= cost <= HIGHEST_COST:
                reason = f"a cost is a whole number from 1 to {HIGHEST_COST}, not {cost!r}"
                self._problem("bad-value", f"{place}: cost", reason)
            if tenants is not None and not _is_texts(tenants):
                reason = f"a list of names is needed, not {tenants!r}; leave it out for all tenants"
                self._problem("bad-value", f"{place}: tenants", reason)
            if len(self.problems) == before and ends is not None and carrier is not None:
                found[place] = Link(ends, carrier, cost, None if tenants is None else frozenset(tenants))
        return found

    def _ends(
        self, table: Mapping[str, Any], brokers: Mapping[str, str], place: str
    ) -> tuple[str, str] | None:
        ends = table.get("ends")
        if ends is None:
            self._problem("missing-key", place, "ends is needed: the names of two brokers")
            return None
        place = f"{place}: ends"
        if not _is_texts(ends) or len(ends) != 2:
            self._problem("bad-value", place, f"the names of two brokers are needed, not {ends!r}")
            return None
        for end in ends:
            if end not in brokers:
                self._problem("unknown-broker", place, f"no [[broker]] is called {end!r}")
        if ends[0] == ends[1]:
            self._problem("self-link", place, f"the link leads from {ends[0]!r} to itself")
        return ends[0], ends[1]

    def _carrier(self, table: Mapping[str, Any], place: str) -> DirectoryCarrier | KafkaCarrier | None:
        kind = table.get("carrier", "directory")
        if not isinstance(kind, str) or kind not in _CARRIERS:
            reason = f"a carrier is {' or '.join(_CARRIERS)}, not {kind!r}"
            self._problem("bad-carrier", f"{place}: carrier", reason)
            return None
        self._known(table, (*_LINK_KEYS, *_CARRIERS[kind]), place)
        return self._kafka(table, place) if kind == "kafka" else self._directory(table, place)

    def _directory(self, table: Mapping[str, Any], place: str) -> DirectoryCarrier | None:
        path = self._text(table, "path", place, "a directory needs a path, a text")
        if path is None:
            return None
        return DirectoryCarrier(path if "://" in path else str((self._folder / path).absolute()))

    def _kafka(self, table: Mapping[str, Any], place: str) -> KafkaCarrier | None:
        before = len(self.problems)
        servers = self._text(table, "servers", place, "Kafka needs servers, such as 'kafka:9092'")
        topics, client = table.get("topics", "tamis"), table.get("client", {})
        retention = table.get("retention", RETENTION)
        if not isinstance(topics, str) or not _TOPICS.fullmatch(topics):
            reason = f"{topics!r} cannot begin topics: up to 100 letters, digits, `.`, `_` and `-` can"
            self._problem("bad-value", f"{place}: topics", reason)
        if isinstance(retention, bool) or not isinstance(retention, int | float) or not retention > 0:
            reason = f"a number of seconds, more than 0, is needed, not {retention!r}"
            self._problem("bad-value", f"{place}: retention", reason)
        if not isinstance(client, dict) or not all(isinstance(one, str) for one in client.values()):
            reason = 'a table of Kafka\'s settings is needed, each a text: { "security.protocol" = "SSL" }'
            self._problem("bad-value", f"{place}: client", reason)
        if servers is None or len(self.problems) > before:
            return None
        return KafkaCarrier(servers, topics, float(retention), dict(client))

    def _text(self, table: Mapping[str, Any], key: str, place: str, reason: str) -> str | None:
        """A text that is needed."""
        value = table.get(key)
        if isinstance(value, str) and value:
            return value
        self._problem("missing-key" if value is None else "bad-value", f"{place}: {key}", reason)
        return None

    def _check_tree(self, brokers: Mapping[str, str], links: Mapping[str, Link]) -> None:
        """Join the ends of each link (union-find): a link within one set closes a cycle."""
        group = {broker: broker for broker in brokers}

        def top(broker: str) -> str:
            while group[broker] != broker:
                group[broker] = group[group[broker]]
                broker = group[broker]
            return broker

        for place, link in links.items():
            one, other = map(top, link.ends)
            twin = next((at for at, known in links.items() if known.name == link.name), place)
            if twin != place:
                self._problem("two-links", f"{place}: ends", f"{twin} has the same ends")
            elif one == other:
                reason = f"{link.ends[0]!r} and {link.ends[1]!r} are connected already: links form a tree"
                self._problem("not-a-tree", f"{place}: ends", reason)
            group[one] = other
        first = next(iter(brokers))
        for broker, place in brokers.items():
            if top(broker) != top(first):
                self._problem("not-connected", place, f"no links lead from {first!r} to {broker!r}")

    def _check_places(self, links: Mapping[str, Link]) -> None:
        """Two links in one directory would mix their logs."""
        taken: dict[str, str] = {}
        for place, link in links.items():
            if isinstance(link.carrier, DirectoryCarrier):
                other = taken.setdefault(link.carrier.path, place)
                if other != place:
                    self._problem("shared-path", f"{place}: path", f"{other} has the same path")


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
