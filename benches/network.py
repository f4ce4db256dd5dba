"""`python -m benches network`: what crosses a network, and what routes and their changes cost. No Spark.

regional   15 brokers in a tree, each with queries of its own region; a message crosses a link if a row of
the table behind it matches. Against the ideal (a subscription behind it matches) and flooding
routes     100,000 queries behind 10 links, aggregated, against matching the queries themselves
changes    changes of a table of routes until a generation has them, against sending the whole table
"""

import random
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import pyarrow as pa
from rich.table import Table

import tamis
from benches.sources import data_file, generated
from tamis.bench.files import read_documents
from tamis.bench.measure import array, build, total
from tamis.catalog import Catalog
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.network.advert import Advert
from tamis.network.interest import InterestTable, Row, rows_of, text_of
from tamis.network.notices import TableChange, decode, encode
from tamis.network.tables import TableVersion
from tamis.network.topology import DirectoryCarrier, Link, Topology

BROKERS = 15
KINDS, NOTED = 200, 0.8
"""Of the items of an order: how many kinds there are, and the share that has a note."""

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Crossings:
    """How many links the same messages cross."""

    ideal: int
    routed: int
    flooding: int
    rows: int
    """In the tables of all links."""


def regional(queries: int, messages: int, share: float | None = None, seed: int = 1) -> Crossings:
    """A binary tree of brokers; `share`: of the rows of each table, as its budget."""
    draw = random.Random(seed)
    names = [f"b{number}" for number in range(BROKERS)]
    links = [Link((names[at], names[(at - 1) // 2]), DirectoryCarrier(names[at])) for at in range(1, BROKERS)]
    topology = Topology(tuple(names), tuple(links))
    subscribed = {
        name: [
            f"/order[@region = '{name}'][.//item[@kind = 'k{draw.randrange(KINDS)}'][note]]"
            for _ in range(queries)
        ]
        for name in names
    }
    sent = [(draw.choice(names), _order(draw, draw.choice(names))) for _ in range(messages)]
    sample = [("", _order(draw, draw.choice(names))) for _ in range(500)]
    tables: dict[tuple[str, str], tamis.Index] = {}
    exact = {name: _index(some) for name, some in subscribed.items()}
    rows = 0
    for link in links:
        for sender in link.ends:
            table = _table(topology, subscribed, sender, link, share, sample)
            rows += len(table)
            tables[sender, link.other(sender)] = _index(map(text_of, table))
    ideal = routed = 0
    for root, message in sent:
        wanted = {name for name in names if exact[name].match(message)}
        waiting = [(root, "")]
        while waiting:
            at, before = waiting.pop()
            for link in topology.links_of(at):
                onward = link.other(at)
                if onward != before and tables[at, onward].match(message):
                    routed += 1
                    waiting.append((onward, at))
        ideal += sum(
            bool(wanted & topology.behind(one, link))
            for link in links
            for one in link.ends
            if root not in topology.behind(one, link)
        )
    return Crossings(ideal, routed, messages * len(links), rows)


def _table(
    topology: Topology,
    subscribed: Mapping[str, Sequence[str]],
    sender: str,
    link: Link,
    share: float | None,
    sample: Sequence[tuple[str, bytes]],
) -> frozenset[Row]:
    """The table by which a broker sends over a link: what is wanted behind it."""
    behind = sorted(topology.behind(sender, link))
    rows = [row for name in behind for query in subscribed[name] for row in rows_of(query)]
    advert = Advert("m", None if share is None else max(1, int(share * len(set(rows)))))
    advert.change("all", "", added=rows)
    advert.generalise(lambda: sample)
    return frozenset(row for _, text in advert.rows() for row in rows_of(text))


def _order(draw: random.Random, region: str) -> bytes:
    items = "".join(
        f"<item kind='k{draw.randrange(KINDS)}'>{'<note/>' * (draw.random() < NOTED)}</item>"
        for _ in range(draw.randint(1, 3))
    )
    return f"<order region='{region}'><items>{items}</items></order>".encode()


def _index(queries: Iterable[str]) -> tamis.Index:
    texts = pa.array(list(queries), pa.large_string())
    index = tamis.Index()
    index.load(pa.table({"target": pa.array(range(len(texts)), pa.uint64()), "query": texts}))
    return index


@dataclass(frozen=True, slots=True)
class Routes:
    """Matching routes of links against matching the queries that they were made from."""

    queries: int
    rows: int
    ratio: float
    candidates_ratio: float


def routes(number: int, links: int = 10) -> Routes:
    """The time of matching without reading, warm, alternating."""
    path = data_file("nitf/docs-500.tar.gz")
    documents = read_documents(path)
    queries = generated(path, dtd="nitf/nitf-2-5.dtd", seed="1", number=number, predicates=1, nested=1)
    tables = [InterestTable() for _ in range(links)]
    for at, query in enumerate(queries):
        tables[at % links].change("all", rows_of(query))
    rows = [text_of(row) for table in tables for row in table.advertised]
    indexes = [build(queries, documents)[0], build(rows, documents)[0], tamis.Index()]
    batch = array(documents)
    times: list[list[float]] = [[], [], []]
    candidates = [0, 0, 0]
    for _ in range(ROUNDS + 1):
        for at, index in enumerate(indexes):
            begun = time.process_time()
            found: Any = index.match_batch(batch)
            times[at].append(time.process_time() - begun)
            candidates[at] = total(found, "candidates")
    full, routed, read = (median(some[1:]) for some in times)
    return Routes(len(queries), len(rows), (routed - read) / (full - read), candidates[1] / candidates[0])


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change of a table costs against the whole table."""

    routes: int
    changes: int
    bytes_ratio: float
    time_ratio: float


def changes(number: int, some: int = 1000) -> Changes:
    """From the subscriptions of one broker to a generation of its neighbour; processor time."""
    advert = Advert("m")
    rows = [rows_of(f"/order/@region='r{at}' and //item/@id={at}") for at in range(number + some)]
    with tempfile.TemporaryDirectory() as name, Catalog(f"{name}/tamis.db") as catalog:
        store = Store(f"{name}/generations")
        with Publisher(catalog, store, Path(name) / "generations") as publisher:

            def send(since: TableVersion | None, added: Any, removed: Any) -> tuple[int, float]:
                begun = time.process_time()
                advert.change("own", "", chain.from_iterable(added), chain.from_iterable(removed))
                new, old = advert.commit({}, everything=False)
                body = encode(TableChange("n", since, advert.version, new, old))
                change = decode(body, "it")
                assert isinstance(change, TableChange)
                if since is None:
                    assert catalog.routes.replace("a.b", change.version, change.added)
                else:
                    assert catalog.routes.change("a.b", since, change.version, change.added, change.removed)
                publisher.refresh()
                return len(body), time.process_time() - begun

            whole, whole_s = send(None, rows[:number], [])
            half = some // 2
            send(advert.version, rows[number : number + 1], [])
            delta, delta_s = send(advert.version, rows[number + 1 : number + half], rows[:half])
    return Changes(number, some, delta / whole, delta_s / whole_s)


Figure: TypeAlias = tuple[str, float, float | None]
"""A name, what was measured, and its upper bound."""


def measure(queries: int, messages: int, behind_links: int, in_tables: int) -> list[Figure]:
    """All figures; ratios of the same run."""
    whole, tenth = regional(queries, messages), regional(queries, messages, share=0.1)
    found: list[Figure] = [
        ("messages over links, × ideal", whole.routed / whole.ideal, 1.1),
        ("… of flooding, × ideal", whole.flooding / whole.ideal, None),
        ("… with a tenth of the rows, × ideal", tenth.routed / tenth.ideal, 2.0),
        ("rows in all tables, a tenth of them", tenth.rows / whole.rows, None),
    ]
    if in_tables:
        changed = changes(in_tables)
        found.append(("bytes of 1,000 changes, × the table", changed.bytes_ratio, 0.02))
        found.append(("processor time of them, × the table", changed.time_ratio, 0.02))
    if behind_links:
        routed = routes(behind_links)
        found.append(("routes behind 10 links, × matching", routed.ratio, 0.6))
        found.append(("rows tested, × matching", routed.candidates_ratio, 0.3))
    return found


def table(figures: Iterable[Figure]) -> Table:
    """For the terminal."""
    shown = Table("figure", "measured", "bar", title="a network of brokers")
    for name, value, bound in figures:
        shown.add_row(name, f"{value:.4g}", "" if bound is None else f"≤ {bound:g}")
    return shown
