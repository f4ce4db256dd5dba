"""Three brokers on one Spark, linked by directories, deliver what one broker with everything would."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tamis.catalog import Catalog
from tamis.errors import TamisError
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.matching import Generation
from tamis.model.subscription import NewSubscription
from tamis.network.messages import unpack
from tamis.network.parcel import Parcel
from tamis.network.routing import Routing
from tamis.network.routing_ports import Shown
from tamis.pipeline.batch_log import BatchLog
from tamis.settings import Input, Settings, SettingsError, load_settings
from tamis.sinks.dead_letters import DeadLetters
from tamis.sinks.outbox import Outbox
from tamis.sources.arrivals import ArrivalsSource
from tamis.sources.directory import DirectorySource
from tamis.spark.broker_links import BrokerLinks
from tamis.spark.connectors.arrivals import read_arrivals
from tamis.spark.connectors.inbox import read_inbox
from tamis.spark.connectors.sinks import dead_letter_writer, sinks
from tamis.spark.pipeline import Pipeline
from tamis.status import StatusBoard
from tests.helpers.network_file import network_file

NETWORK = network_file("ab", "bc", tenants={"bc": ["t", "u"]})

SUBSCRIPTIONS = {
    "a": [
        NewSubscription("ann", "//b", id="a1", tenant="t"),
        NewSubscription("all", "/*", id="a2", tenant="u"),
    ],
    "b": [NewSubscription("bob", "//c", id="b1", tenant="t")],
    "c": [
        NewSubscription("cat", "for $b in //b return <found>{ $b }</found>", id="c1", tenant="t"),
        NewSubscription("all", "/*", id="c2", tenant="u"),
    ],
}
MESSAGES = {
    "a": {"t": {"m1": b"<a><b/></a>", "m2": b"<a><c/></a>", "bad": b"<a><b></a>"}},
    "c": {"u": {"m1": b"<b>1</b>", "m9": "<é/>".encode("utf-16")}},
}


def source(broker: str, tenant: str) -> str:
    name = f"in-{broker}-{tenant}"
    return f"[[source]]\nname = '{name}'\npath = '{name}'\ntenant = '{tenant}'\n"


@dataclass
class Broker:
    """A broker whose sources are read when a test says so."""

    spark: SparkSession
    folder: Path
    settings: Settings
    links: BrokerLinks = field(init=False)
    generation: int = field(init=False)
    routing: Routing | None = None

    def __post_init__(self) -> None:
        self.links = BrokerLinks(self.settings, StatusBoard(self.settings.state))

    def subscribe(self, subscriptions: Iterable[NewSubscription]) -> None:
        with Catalog(self.settings.catalog) as catalog:
            for one in subscriptions:
                catalog.add(one)
            store = Store(self.settings.generations)
            with Publisher(catalog, store, Path(self.settings.generations)) as publisher:
                self.generation = publisher.refresh()

    @contextmanager
    def routes(self) -> Iterator[None]:
        """Route by what neighbours want, for a while."""
        with Catalog(self.settings.catalog) as catalog:
            store = Store(self.settings.generations)
            with Publisher(catalog, store, Path(self.settings.generations)) as publisher:

                def publish() -> Shown | None:
                    self.generation = publisher.refresh()
                    return publisher.shown

                self.routing = self.links.open_routing(catalog, publish)
                yield

    def established(self) -> set[str]:
        """The brokers at which all that is subscribed to here is in force."""
        with Catalog(self.settings.catalog) as catalog:
            newest = catalog.version.count
            return {name for name, count in catalog.routes.established().items() if count == newest}

    def read_sources(self) -> None:
        """Read all messages that publishers sent."""
        for one in self.settings.sources:
            self._run(one)

    def read_arrivals(self) -> None:
        """Read all messages that arrived over links."""
        self._run(self.settings.inputs[-1])

    def exchange(self) -> None:
        for end in self.links._ends:
            end.exchange()

    def crash_after_publishing(self) -> None:
        """Set the state after the last batch of arrivals was killed when its parcels were published."""
        (self.settings.checkpoint("network") / "commits" / "0").unlink()
        (self.settings.checkpoint("network") / "commits" / ".0.crc").unlink(missing_ok=True)
        (log,) = (self.settings.state / "batches" / "network").glob("*.jsonl")
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))

    def _run(self, one: Input) -> None:
        reference = Generation(self.settings.generations, self.generation, stored=True)
        write = self.links.publisher(one)
        pipeline = Pipeline(
            one,
            lambda _: reference,
            lambda: self.generation,
            sinks(self.settings),
            dead_letter_writer(self.settings),
            write,
        )
        checkpoint = self.settings.checkpoint(one.name)

        def batch(rows: DataFrame, number: int) -> None:
            batches = BatchLog(self.settings.state / "batches" / one.name, f"checkpoint-{one.name}")
            pipeline.run(rows, number, "", batches)

        rows = (
            read_arrivals(self.spark, one)
            if isinstance(one, ArrivalsSource)
            else read_inbox(self.spark, one, tasks=1)
            if isinstance(one, DirectorySource)
            else None
        )
        assert rows is not None
        writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.foreachBatch(batch).start().awaitTermination()

    def deliveries(self) -> Counter[Any]:
        outbox = Outbox(self.folder / "outbox")
        rows = (row for one in outbox.published() for part in outbox.read(one) for row in part.to_pylist())
        return Counter((row["id"], row["message"], row["subscription"], row["payload"]) for row in rows)

    def letters(self) -> Counter[Any]:
        letters = DeadLetters(self.folder / "dead-letters")
        rows = (row for one in letters.published() for part in letters.read(one) for row in part.to_pylist())
        return Counter((row["source"], row["id"], row["code"]) for row in rows)


def broker(spark: SparkSession, folder: Path, text: str) -> Broker:
    folder.mkdir()
    (folder / "tamis.toml").write_text(text)
    return Broker(spark, folder, load_settings(folder / "tamis.toml", environment={}))


def publish(one: Broker, name: str) -> None:
    for tenant, messages in MESSAGES.get(name, {}).items():
        inbox = one.folder / f"in-{name}-{tenant}"
        inbox.mkdir()
        for message, content in messages.items():
            (inbox / f"{message}.xml").write_bytes(content)


def test_three_brokers_deliver_what_one_would(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(NETWORK)
    brokers = {}
    for name in "abc":
        sources = "".join(source(name, tenant) for tenant in MESSAGES.get(name, {}))
        text = f"[broker]\nname = '{name}'\nnetwork = '../network.toml'\n{sources}"
        brokers[name] = broker(spark, tmp_path / name, text)
        brokers[name].subscribe(SUBSCRIPTIONS[name])
        publish(brokers[name], name)
    everything = "".join(source(name, tenant) for name in MESSAGES for tenant in MESSAGES[name])
    central = broker(spark, tmp_path / "central", everything)
    central.subscribe(one for some in SUBSCRIPTIONS.values() for one in some)
    for name in MESSAGES:
        publish(central, name)
    central.read_sources()

    a, b, c = brokers.values()
    a.read_sources()
    c.read_sources()
    b.exchange()
    b.read_arrivals()
    parcels = sorted((tmp_path / "links").glob("*/b.*/*/*.parcel"))
    b.crash_after_publishing()
    b.read_arrivals()
    # The batch was repeated, and its parcels were not.
    assert sorted((tmp_path / "links").glob("*/b.*/*/*.parcel")) == parcels
    for one in (b, a, c, b):
        one.exchange()
    a.read_arrivals()
    c.read_arrivals()

    delivered = sum((one.deliveries() for one in brokers.values()), Counter())
    assert delivered == central.deliveries()
    assert delivered.total() == 7
    assert sum((one.letters() for one in brokers.values()), Counter()) == central.letters()
    assert central.letters() == Counter([("in-a-t", "bad.xml", "mismatched-tag")])


SIX = ("12", "23", "14", "45", "46")


def test_messages_cross_only_links_behind_which_somebody_wants_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Six brokers; 2 and 5 want something, and 3 publishes."""
    (tmp_path / "network.toml").write_text(network_file(*SIX))
    # The weakening of the second one does not say that both attributes are of one element.
    wanted = {
        "2": [("x", "//b"), ("w", "//d[@x][@y]")],
        "5": [("y", "//c[. = 1]"), ("z", "for $c in //c return <m>{ $c }</m>")],
    }
    own = "[[source]]\nname = 'in'\npath = 'in'\n"
    messages = {"m1": b"<a><b/></a>", "m2": b"<a><c>1</c></a>", "m3": b"<a/>", "m4": b"<a><b/><c/></a>"}
    messages["m5"] = b"<a><d x='1'/><d y='1'/></a>"
    brokers = {}
    with ExitStack() as stack:
        for name in "123456":
            text = f"[broker]\nname = '{name}'\nnetwork = '../network.toml'\n"
            one = brokers[name] = broker(spark, tmp_path / name, text + (own if name == "3" else ""))
            one.subscribe(NewSubscription(f"of {name}", query, id) for id, query in wanted.get(name, []))
            stack.enter_context(one.routes())
        everywhere = set("123456")
        for _ in range(40):
            for one in brokers.values():
                one.exchange()
                assert one.routing is not None
                one.routing.step()
            if all(one.established() == everywhere for one in brokers.values()):
                break
        assert [one.established() for one in brokers.values()] == [everywhere] * 6
        inbox = tmp_path / "3" / "in"
        inbox.mkdir()
        for id, content in messages.items():
            (inbox / f"{id}.xml").write_bytes(content)
        brokers["3"].read_sources()
        for name in "214":
            brokers[name].exchange()
            brokers[name].read_arrivals()
        brokers["5"].exchange()
        brokers["5"].read_arrivals()
        brokers["6"].exchange()
    crossed = {
        f"{path.parts[-4]} {path.parts[-3]}": sorted(
            map(str, unpack(Parcel.decode(path.read_bytes(), "").body, "")["id"].to_pylist())
        )
        for path in sorted((tmp_path / "links").glob("*/*/*/*.parcel"))
        if Parcel.decode(path.read_bytes(), "").kind == "messages"
    }
    both = ["m2.xml", "m4.xml"]
    assert crossed == {
        "23 3.2": ["m1.xml", *both, "m5.xml"],
        "12 2.1": both,
        "14 1.4": both,
        "45 4.5": both,
    }
    in_vain = {name: {one.link.name: one.in_vain for one in brokers[name].links._ends} for name in "214"}
    assert in_vain == {
        "2": {"1.2": 0, "2.3": 1},
        "1": {"1.2": 0, "1.4": 0},
        "4": {"1.4": 0, "4.5": 0, "4.6": 0},
    }
    central = broker(spark, tmp_path / "central", own)
    central.subscribe(
        NewSubscription(f"of {name}", query, id) for name in wanted for id, query in wanted[name]
    )
    shutil.copytree(inbox, tmp_path / "central" / "in")
    central.read_sources()
    assert sum((one.deliveries() for one in brokers.values()), Counter()) == central.deliveries()


def test_a_broker_has_its_links_or_says_why_not(tmp_path: Path) -> None:
    file = tmp_path / "tamis.toml"
    file.write_text("[broker]\nname = 'z'\n")
    (tmp_path / "network.toml").write_text(NETWORK)
    settings = load_settings(file, environment={})
    assert settings.sources == ()
    assert [one.name for one in settings.inputs] == ["network"]
    with pytest.raises(TamisError, match="unknown-broker"):
        BrokerLinks(settings, StatusBoard(tmp_path / "state"))
    file.write_text("[broker]\nname = 'a'\n[[source]]\nname = 'network'\npath = 'x'\n")
    with pytest.raises(SettingsError, match="two-sources"):
        load_settings(file, environment={})
    file.write_text("[broker]\nname = 'a'\nhops = 0\n")
    with pytest.raises(SettingsError, match="hops is at least 1"):
        load_settings(file, environment={})


def test_a_source_waits_while_a_log_is_full(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(network_file("ab"))
    text = (
        "[broker]\nname = 'a'\nnetwork = '../network.toml'\nlog = 1\n[[source]]\nname = 'in'\npath = 'in'\n"
    )
    one = broker(spark, tmp_path / "a", text)
    (source,) = one.settings.sources
    asked: list[int] = []

    def stopping() -> bool:
        asked.append(1)
        return len(asked) > 2

    one.subscribe([])
    with one.routes():
        assert one.routing is not None
        one.links.wait_for_room(source, stopping)
        assert len(asked) == 1
        # Its question to b is more than a byte.
        one.routing.step()
        one.routing.step()
        assert one.routing.pressed_by == {"a.b"}
        one.links.wait_for_room(one.settings.inputs[-1], stopping)
        assert len(asked) == 1
        one.links.wait_for_room(source, stopping)
        assert len(asked) == 3
