"""Kafka, with a real broker: messages in, deliveries out."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.demo.kafka_broker import Broker
from tamis.model.envelope import ENVELOPE, VERSION
from tamis.model.headers import MAX_BYTES, MAX_HEADERS, pack_headers, unpack_headers
from tamis.sources import kafka_jars as jars
from tamis.sources.kafka import ID_HEADER, KafkaError, KafkaSink, KafkaSource
from tamis.spark.connectors.kafka import from_kafka, read_kafka, sink_options, to_kafka
from tamis.spark.envelope import ENVELOPE_TYPE

HEADERS = (None, '{"name":"é","priority":"high"}')
"""Of the messages of deliveries, in turns."""


def publish(spark: SparkSession, broker: Broker, topic: str, messages: dict[str | None, str | None]) -> None:
    """Write messages to a topic, with their ids as headers where they have one."""
    rows = [
        (None if xml is None else xml.encode(), [] if given is None else [("tamis-id", given.encode())])
        for given, xml in messages.items()
    ]
    frame = spark.createDataFrame(rows, "value binary, headers array<struct<key string, value binary>>")
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    writer.option("includeHeaders", "true").option("topic", topic).save()


def run(spark: SparkSession, source: KafkaSource, folder: Path) -> list[int]:
    """Everything that is there now into Parquet files; the rows of each batch."""
    writer = read_kafka(spark, source).writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def output(spark: SparkSession, folder: Path) -> list[Any]:
    return spark.read.schema(ENVELOPE_TYPE).parquet(str(folder / "out")).collect()


def test_messages_come_in_envelopes(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = "in-envelopes"
    publish(spark, kafka, topic, {f"id-{n}": f"<a>{n}</a>" for n in range(100)})
    publish(spark, kafka, topic, {None: "<b/>", "": None})
    source = KafkaSource("feed", "acme", kafka.servers, (topic,), schema="a.dtd", max_offsets=40)
    read = run(spark, source, tmp_path)
    assert sum(read) == 102
    assert max(read) <= 40
    rows = output(spark, tmp_path)
    assert {row["id"] for row in rows} >= {f"id-{n}" for n in range(100)}
    assert {(row["version"], row["tenant"], row["source"], row["hops"], row["schema"]) for row in rows} == {
        (VERSION, "acme", "feed", 0, "a.dtd")
    }
    (made,) = (row for row in rows if row["xml"] == b"<b/>")
    assert re.fullmatch(r"in-envelopes-[01]-\d+", made["id"])
    assert made["offset"] == made["id"]
    assert (made["topic"], made["headers"]) == (topic, None)
    (dead,) = (row for row in rows if row["code"])
    assert (dead["code"], dead["xml"], dead["id"]) == ("no-xml", None, dead["offset"])
    assert read_kafka(spark, source).columns == ENVELOPE.names

    # Each once, also over a restart.
    publish(spark, kafka, topic, {f"id-{n}": "<a/>" for n in range(100, 110)})
    assert sum(run(spark, source, tmp_path)) == 10
    assert Counter(row["offset"] for row in output(spark, tmp_path)).most_common(1)[0][1] == 1
    assert len(output(spark, tmp_path)) == 112


def deliveries(spark: SparkSession, names: list[tuple[str, str]]) -> DataFrame:
    rows = [
        (f"d{n}", f"m{n}", "feed", f"s{n}", n, subscriber, tenant, b"<out>%d</out>" % n, HEADERS[n % 2])
        for n, (tenant, subscriber) in enumerate(names)
    ]
    columns = "id string, message string, source string, subscription string, revision int"
    more = "subscriber string, tenant string, payload binary, headers string"
    return spark.createDataFrame(rows, f"{columns}, {more}")


def test_deliveries_go_to_topics(spark: SparkSession, kafka: Broker) -> None:
    sink = KafkaSink(kafka.servers, "out.{tenant}.{subscriber}")
    rows = to_kafka(deliveries(spark, [("acme", "ann"), ("acme", "bob"), ("zoo", "ann")]), sink)
    rows.write.format("kafka").options(**sink_options(sink)).save()
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    reader = reader.option("subscribePattern", r"out\..*").option("includeHeaders", "true")
    given = sorted(reader.load().collect(), key=lambda row: row["value"])
    assert [(row["topic"], bytes(row["key"]), bytes(row["value"])) for row in given] == [
        ("out.acme.ann", b"ann", b"<out>0</out>"),
        ("out.acme.bob", b"bob", b"<out>1</out>"),
        ("out.zoo.ann", b"ann", b"<out>2</out>"),
    ]
    assert {header["key"]: bytes(header["value"]) for header in given[1]["headers"]} == {
        "tamis-delivery": b"d1",
        "tamis-message": b"m1",
        "tamis-source": b"feed",
        "tamis-subscription": b"s1",
        "tamis-revision": b"1",
        "priority": b"high",
        "name": "é".encode(),
    }
    assert all(header["key"].startswith("tamis-") for header in given[0]["headers"])


def test_no_two_names_lead_to_one_topic(spark: SparkSession) -> None:
    names = [("a.b", "c"), ("a", "b.c"), ("a b", "c"), ("a/b", "c"), ("é", "c"), ("x" * 300, "c"), ("", "c")]
    rows = to_kafka(deliveries(spark, names), KafkaSink("", "{tenant}.{subscriber}")).collect()
    topics = [row["topic"] for row in rows]
    assert len(set(topics)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) for topic in topics)
    # A name that looks like a hash is hashed itself.
    (tenant, _) = topics[0].split(".")
    (row,) = to_kafka(deliveries(spark, [(tenant, "c")]), KafkaSink("", "{tenant}.{subscriber}")).collect()
    assert row["topic"] != topics[0]


@pytest.mark.parametrize("topic", ["{tenant}/x", "{message}", "{", "a b"])
def test_patterns_that_name_no_topic(topic: str) -> None:
    with pytest.raises(KafkaError):
        KafkaSink("localhost:9092", topic)


def test_a_broker_keeps_its_data(kafka: Broker, spark: SparkSession, tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker")
    with broker:
        publish(spark, broker, "kept", {"1": "<a/>"})
    with broker:
        source = KafkaSource("feed", "acme", broker.servers, ("kept",))
        assert run(spark, source, tmp_path) == [1]
    assert kafka.servers != broker.servers


def test_a_broker_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tamis.demo.kafka_broker", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kafka.bootstrap.servers = 127.0.0.1:")
        process.terminate()
        assert process.wait(60) == 0


def test_a_missing_program_names_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("mvn") is None
    with pytest.raises(jars.JarsError, match="apt-get install maven"):
        jars.connector_jars()


def test_invalid_records_do_not_stop_the_source(spark: SparkSession) -> None:
    """Headers and times that cannot be stored, without a broker."""
    ids = [b"good", b"a\x00b", b"a\nb", b"x" * 1001, b"\xff", b""]
    columns = "topic string, partition int, offset bigint, value binary, micros bigint"
    headers = "headers array<struct<key string, value binary>>"
    rows = [("t", 0, n, b"<a/>", -n if n else 1 << 62, [(ID_HEADER, given)]) for n, given in enumerate(ids)]
    frame = spark.createDataFrame(rows, f"{columns}, {headers}")
    frame = frame.withColumn("timestamp", F.timestamp_micros("micros"))
    given = from_kafka(frame, KafkaSource("feed", "acme", "", ("t",))).orderBy("offset").collect()
    assert [(row["id"], row["code"]) for row in given] == [
        ("good", None),
        ("t-0-1", "bad-id"),
        ("t-0-2", "bad-id"),
        ("t-0-3", "bad-id"),
        ("\ufffd", None),
        ("t-0-5", None),
    ]
    assert [row["received"].year for row in given] == [9999, *[1970] * 5]


def test_headers_of_records_are_headers_of_messages(spark: SparkSession) -> None:
    """By the rules for all sources: a header that the source names and that is not allowed refuses."""
    given: list[list[tuple[str, bytes | None]] | None] = [
        None,
        [],
        [("priority", b"low"), ("empty", None), ("priority", 'hö"ch'.encode())],
        [("tamis-id", b"x"), ("Tamis-Delivery", b"y")],
        [("a b", b"1")],
        [("a\n", b"1")],
        [("a", b"\xff")],
        [("a", b"x\ny")],
        [("a", "\x85".encode())],
        [(f"n{n}", b"") for n in range(MAX_HEADERS)],
        [(f"n{n}", b"") for n in range(MAX_HEADERS + 1)],
        [("a", "é".encode() * (MAX_BYTES // 2))],
    ]
    columns = "topic string, partition int, offset bigint, value binary, timestamp timestamp"
    headers = "headers array<struct<key string, value binary>>"
    time = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [("t", 0, n, b"<a/>", time, one) for n, one in enumerate(given)]
    frame = spark.createDataFrame(rows, f"{columns}, {headers}").orderBy("offset")

    def read(source: KafkaSource) -> list[tuple[dict[str, str], str | None]]:
        found = from_kafka(frame, source).collect()
        return [(unpack_headers(row["headers"]), row["code"]) for row in found]

    none: dict[str, str] = {}
    bad, limit = (none, "bad-header"), (none, "header-limit")
    assert read(KafkaSource("feed", "acme", "", ("t",))) == [
        *[({}, None)] * 2,
        ({"empty": "", "priority": 'hö"ch'}, None),
        # Nobody asked for those that are not allowed.
        *[({}, None)] * 6,
        ({f"n{n}": "" for n in range(MAX_HEADERS)}, None),
        *[limit] * 2,
    ]
    named = read(KafkaSource("feed", "acme", "", ("t",), headers=("a", "a b", "a\n")))
    assert named[4:9] == [bad] * 5
    assert named[11] == limit
    some = read(KafkaSource("feed", "acme", "", ("t",), headers=("priority",)))
    assert [one for one in some if one != ({}, None)] == [({"priority": 'hö"ch'}, None)]
    (stored,) = from_kafka(frame.where("offset = 2"), KafkaSource("feed", "acme", "", ("t",))).collect()
    assert stored["headers"] == pack_headers(unpack_headers(stored["headers"]))
