"""Links by Kafka: what directories do, and what only topics can."""

import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic, TopicPartition

from tamis.demo.kafka_broker import Broker
from tamis.network import kafka_link
from tamis.network.topology import Topology
from tests.helpers.link_ends import MemoryBroker, kafka_tree, settle


@pytest.fixture
def topics() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def pair(kafka: Broker, topics: str, tmp_path: Path) -> Iterator[tuple[MemoryBroker, MemoryBroker]]:
    topology = kafka_tree(kafka.servers, topics, "ab")
    a, b = MemoryBroker(topology, "a", tmp_path), MemoryBroker(topology, "b", tmp_path)
    yield a, b
    close(a, b)


def close(*brokers: MemoryBroker) -> None:
    for broker in brokers:
        for end in broker.ends.values():
            end.close()


def states(*brokers: MemoryBroker) -> list[tuple[str, str]]:
    return [(end.status.state, end.status.code) for broker in brokers for end in broker.ends.values()]


def test_a_message_reaches_every_broker_once(kafka: Broker, topics: str, tmp_path: Path) -> None:
    topology: Topology = kafka_tree(kafka.servers, topics, "ab", "bc", "ad", "de", "df")
    brokers = {name: MemoryBroker(topology, name, tmp_path) for name in topology.brokers}
    for name, broker in brokers.items():
        broker.publish("inbox:0", f"{name}1", f"{name}2")
    settle(brokers.values())
    everything = Counter(f"{name}{number}" for name in brokers for number in (1, 2))
    assert {name: broker.delivered for name, broker in brokers.items()} == dict.fromkeys(brokers, everything)
    close(*brokers.values())


def test_restarts_repeat_nothing(pair: tuple[MemoryBroker, MemoryBroker], tmp_path: Path) -> None:
    a, b = pair
    for number in range(4):
        a.publish(f"inbox:{number}", str(number))
        a.exchange()
        a.restart()
        b.restart()
        b.exchange()
        b.process()
    # Without its offset it reads from the beginning.
    (tmp_path / "state" / "b" / "logs" / "a.b.offset").unlink()
    b.restart()
    a.publish("inbox:4", "4")
    settle([a, b])
    assert b.delivered == Counter("01234")
    assert states(a, b) == [("up", "")] * 2


def test_a_large_parcel_has_several_records(
    pair: tuple[MemoryBroker, MemoryBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    monkeypatch.setattr(kafka_link, "CHUNK_BYTES", 100)
    many = [f"m{number}" for number in range(50)]
    a.publish("inbox:0", *many)
    # Its first records alone, as a sender leaves them that is killed.
    topic = a.ends["b"]._carrier._outgoing  # type: ignore[attr-defined]
    parcel = a.ends["b"]._carrier.log.parcel(1)
    topic.write(parcel)
    producer = topic._producer
    header = kafka_link._Chunk(f"{parcel.epoch}/1/{parcel.hash}", 0, 9).header()
    producer.produce(topic.name, b"cut", partition=0, headers={kafka_link.HEADER: header})
    producer.flush()
    a.publish("inbox:1", "last")
    settle([a, b])
    assert b.delivered == Counter([*many, "last"])


def test_a_sender_that_was_restored_from_a_copy_begins_a_new_log(
    pair: tuple[MemoryBroker, MemoryBroker], tmp_path: Path
) -> None:
    a, b = pair
    logs = tmp_path / "state" / "a" / "logs"
    a.publish("inbox:0", "x")
    settle([a, b])
    a.publish("inbox:1", "y")
    shutil.copytree(logs, tmp_path / "copy")
    a.publish("inbox:2", "z")
    settle([a, b])
    shutil.rmtree(logs)
    shutil.copytree(tmp_path / "copy", logs)
    a.restart()
    a.publish("inbox:3", "w")
    settle([a, b])
    a.publish("inbox:4", "v")
    settle([a, b])
    assert b.delivered == Counter("xyzwv")
    assert "does not know" in a.ends["b"].status.began
    assert states(a, b) == [("up", "")] * 2


def test_records_that_are_no_parcels_are_passed_over_if_nothing_is_missing(
    pair: tuple[MemoryBroker, MemoryBroker],
) -> None:
    a, b = pair
    a.publish("inbox:0", "x")
    settle([a, b])
    topic = a.ends["b"]._carrier._outgoing  # type: ignore[attr-defined]
    topic._producer.produce(topic.name, b"noise", partition=0)
    topic._producer.flush()
    b.exchange()
    assert states(b) == [("stopped", "damaged-parcel")]
    a.publish("inbox:1", "y")
    settle([a, b])
    assert b.delivered == Counter("xy")
    assert states(b) == [("up", "")]


def test_what_retention_deleted_is_a_gap_until_the_sender_repeats_it(
    kafka: Broker, pair: tuple[MemoryBroker, MemoryBroker]
) -> None:
    a, b = pair
    a.publish("inbox:0", "x")
    a.exchange()
    name = a.ends["b"]._carrier._outgoing.name  # type: ignore[attr-defined]
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    for done in admin.delete_records([TopicPartition(name, 0, 1)]).values():
        done.result()
    a.publish("inbox:1", "y")
    a.exchange()
    b.exchange()
    assert states(b) == [("stopped", "gap")]
    assert name in b.ends["a"].status.reason
    a.restart()
    settle([a, b])
    assert b.delivered == Counter("xy")
    assert states(b) == [("up", "")]


def test_a_topic_needs_one_partition(kafka: Broker, topics: str, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.create_topics([NewTopic(f"{topics}.a.b", 2, 1)])[f"{topics}.a.b"].result()
    a = MemoryBroker(kafka_tree(kafka.servers, topics, "ab"), "a", tmp_path)
    a.publish("inbox:0", "x")
    a.exchange()
    assert states(a) == [("stopped", "bad-topic")]
    assert "2 partitions" in a.ends["b"].status.reason
    close(a)


def test_kafka_may_go_and_come_back(topics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_link, "TIMEOUT", 2.0)
    monkeypatch.setattr(kafka_link, "TIMEOUT_MS", 2000)
    with Broker(tmp_path / "kafka") as server:
        topology = kafka_tree(server.servers, topics, "ab")
        a, b = MemoryBroker(topology, "a", tmp_path), MemoryBroker(topology, "b", tmp_path)
        a.publish("inbox:0", "x")
        settle([a, b])
        server.stop()
        # Publishing needs the log only.
        a.publish("inbox:1", "y")
        a.exchange()
        b.exchange()
        assert states(a, b) == [("unreachable", "link-unreachable")] * 2
        server.start()
        settle([a, b])
        assert b.delivered == Counter("xy")
        assert states(a, b) == [("up", "")] * 2
        close(a, b)


def test_settings_of_the_client_are_kafka_s_own(
    kafka: Broker, topics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_link, "TIMEOUT", 2.0)
    topology = kafka_tree(kafka.servers, topics, "ab", security_protocol="SSL")
    a = MemoryBroker(topology, "a", tmp_path)
    a.publish("inbox:0", "x")
    a.exchange()
    assert states(a) == [("unreachable", "link-unreachable")]
    close(a)
    a = MemoryBroker(kafka_tree(kafka.servers, topics, "ab", no_such="x"), "a", tmp_path)
    a.exchange()
    assert "no.such" in a.ends["b"].status.reason
    close(a)
