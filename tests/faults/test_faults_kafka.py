"""The same with Kafka; a separate file, so that it runs in parallel."""

from pathlib import Path

from pyspark.sql import SparkSession

from tamis.catalog import Catalog
from tamis.demo.kafka_broker import Broker
from tests.helpers.books import KILLS, Books, counted, phases, strike
from tests.helpers.jobs import Folder, running, until_running
from tests.helpers.waiting import until

TOPIC = "faults"

KAFKA = """
[[source]]
kind = "kafka"
name = "feed"
servers = "{servers}"
topics = ["{topic}"]
max_offsets = 50

[[sink]]
path = "outbox"

[[sink]]
kind = "kafka"
servers = "{servers}"
topic = "{topic}-out"
"""


class Feed(Books):
    """Publishes messages to Kafka, and records them."""

    def __init__(
        self, folder: Folder, catalog: Catalog, seed: int, spark: SparkSession, servers: str
    ) -> None:
        super().__init__(folder, catalog, seed)
        self.spark = spark
        self.servers = servers

    def publish(self, count: int) -> None:
        rows = [(xml, [("tamis-id", name.encode())]) for name, xml in self.made(count)]
        frame = self.spark.createDataFrame(
            rows, "value binary, headers array<struct<key string, value binary>>"
        )
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer.option("includeHeaders", "true").option("topic", TOPIC).save()


def test_kafka_has_every_delivery_at_least_once_with_the_same_id(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    folder = Folder(tmp_path, KAFKA.format(servers=kafka.servers, topic=TOPIC))
    with Catalog(folder.catalog) as catalog:
        books = Feed(folder, catalog, KILLS, spark, kafka.servers)
        books.publish(5)
        for kill in counted("Kafka"):
            with running(folder) as job:
                books.change()
                until_running(job)
                moments = phases(folder, "feed")
                books.publish(20)
                books.change()
                until(moments[kill % len(moments)], f"the moment of kill {kill}")
                strike(job, kill)
        with running(folder) as job:
            until_running(job)
            expected = len(books.messages) + len(books.broken)
            until(lambda: folder.read("feed") == expected, "all messages")
            assert job.stop() == 0
    books.check("feed")
    sent = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    sent = sent.option("subscribe", f"{TOPIC}-out").option("includeHeaders", "true")
    ids = {
        bytes(header.value).decode()
        for row in sent.load().select("headers").collect()
        for header in row.headers
        if header.key == "tamis-delivery"
    }
    assert ids == {row["id"] for row in folder.deliveries()}
