"""A disk that is full, and a Kafka or a database that cannot be reached, while the job runs.

Each gives an error with a code, is tried again, and loses nothing.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from tamis.catalog import Catalog
from tamis.demo.kafka_broker import Broker
from tamis.model.subscription import NewSubscription
from tests.helpers.jobs import Folder, Job, running, until_running
from tests.helpers.servers import Postgres, free_port, mounted, postgres_server
from tests.helpers.waiting import until


def until_failing(job: Job, code: str) -> None:
    """Wait until the job says what is wrong: in its log, and in its status unless that has no room."""
    folder = job.folder

    def says() -> bool:
        assert job.process.poll() is None
        status, log = folder.status(), folder.log.read_text()
        seen = (status is not None and status.failing) or "the status is not written" in log
        return f" {code}: " in log and seen

    until(says, code)
    assert "Traceback" not in folder.log.read_text()


def until_well(job: Job) -> None:
    """Wait until nothing fails any more."""

    def well() -> bool:
        status = job.folder.status()
        return status is not None and not status.failing

    until(well, "the job to recover")


def fill(disk: Path) -> Path:
    """Take all that is left of a disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return filler


@pytest.mark.parametrize(("place", "size", "code"), [("outbox", "1m", "sink-full"), ("", "64m", "disk-full")])
def test_a_full_disk_is_waited_for(tmp_path: Path, place: str, size: str, code: str) -> None:
    """Below the deliveries, or below everything that the job has."""
    with mounted(tmp_path / "job" / place, size) as disk:
        folder = Folder(tmp_path / "job", log=tmp_path / "job.log")
        with Catalog(folder.catalog) as catalog:
            catalog.add(NewSubscription("ann", "/a", id="q"))
        with running(folder) as job:
            until_running(job)
            folder.publish("m0.xml", b"<a/>")
            until(lambda: folder.read() == 1, "the first message")
            waiting = [folder.draft(f"m{number}.xml", b"<a/>") for number in range(1, 20)]
            filler = fill(disk)
            for draft in waiting:
                folder.enter(draft)
            until_failing(job, code)
            assert len(folder.deliveries()) == 1
            filler.unlink()
            until(lambda: folder.read() == 20, "all messages")
            until_well(job)
            assert job.stop() == 0
        found = Counter(row["message"] for row in folder.deliveries())
    assert found == Counter(f"m{number}.xml" for number in range(20))


KAFKA = """
[[source]]
kind = "kafka"
name = "feed"
servers = "{servers}"
topics = ["in"]
client = {{ "default.api.timeout.ms" = "4000", "request.timeout.ms" = "3000" }}

[[sink]]
path = "outbox"

[[sink]]
kind = "kafka"
servers = "{servers}"
topic = "out"
client = {{ "max.block.ms" = "4000", "delivery.timeout.ms" = "4000", "request.timeout.ms" = "3000" }}
"""

INBOX = """
[[source]]
name = "inbox"
path = "inbox"
"""


def test_kafka_may_go_and_come_back(spark: SparkSession, tmp_path: Path) -> None:
    """As a source, whose broker is gone between batches, and as a sink, in the middle of one."""
    with Broker(tmp_path / "kafka") as broker:
        folder = Folder(tmp_path, KAFKA.format(servers=broker.servers) + INBOX)

        def send(first: int, count: int) -> None:
            rows = [(b"<a/>", [("tamis-id", b"k%d" % number)]) for number in range(first, first + count)]
            frame = spark.createDataFrame(
                rows, "value binary, headers array<struct<key string, value binary>>"
            )
            writer = frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers)
            writer.option("includeHeaders", "true").option("topic", "in").save()

        with Catalog(folder.catalog) as catalog:
            catalog.add(NewSubscription("ann", "/a", id="q"))
        send(0, 5)
        with running(folder) as job:
            until_running(job)
            until(lambda: folder.read("feed") == 5, "the first messages")
            broker.stop()
            for number in range(5):
                folder.publish(f"m{number}.xml", b"<a/>")
            until_failing(job, "kafka-unreachable")
            until(lambda: _retrying(job) == {"feed", "inbox"}, "both sources to fail")
            broker.start()
            send(5, 5)
            until(lambda: (folder.read("feed"), folder.read("inbox")) == (10, 5), "all messages")
            until_well(job)
            assert job.stop() == 0
        rows = folder.deliveries()
        wanted = {f"k{number}" for number in range(10)} | {f"m{number}.xml" for number in range(5)}
        assert Counter(row["message"] for row in rows) == Counter(wanted)
        sent = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
        sent = sent.option("subscribe", "out").option("includeHeaders", "true")
        ids = [
            header.value
            for row in sent.load().select("headers").collect()
            for header in row.headers
            if header.key == "tamis-delivery"
        ]
        assert {bytes(one).decode() for one in ids} == {row["id"] for row in rows}


def _retrying(job: Job) -> set[str]:
    status = job.folder.status()
    return {source.name for source in status.sources if source.state == "retrying"} if status else set()


@pytest.fixture
def database() -> Iterator[Postgres]:
    """A server that may be stopped."""
    with postgres_server() as server:
        yield server


def test_the_catalog_may_go_and_come_back(database: Postgres, tmp_path: Path) -> None:
    """Messages are matched as before; changes appear once the database is back."""
    url = database.new_database()
    port = free_port()
    folder = Folder(tmp_path, f"[metrics]\nport = {port}\n")
    with Catalog(url) as catalog:
        catalog.add(NewSubscription("ann", "/a", id="q1"))
    with running(folder, "--catalog", url) as job:
        until_running(job)
        folder.publish("m0.xml", b"<a/>")
        until(lambda: folder.read() == 1, "the first message")
        with Catalog(url) as catalog:
            catalog.add(NewSubscription("bob", "/a", id="q2"))
        database.stop()
        folder.publish("m1.xml", b"<a/>")
        until_failing(job, "catalog-unreachable")
        until(lambda: folder.read() == 2, "the message without the database")
        metrics = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert 'tamis_errors_total{code="catalog-unreachable",source=""} ' in metrics
        database.start()
        folder.publish("m2.xml", b"<a/>")
        until(lambda: folder.read() == 3, "the message after it")
        until_well(job)
        assert job.stop() == 0
    found = sorted((row["message"], row["subscription"]) for row in folder.deliveries())
    assert found == [("m0.xml", "q1"), ("m1.xml", "q1"), ("m2.xml", "q1"), ("m2.xml", "q2")]


def test_a_job_waits_for_its_catalog(database: Postgres, tmp_path: Path) -> None:
    url = database.new_database()
    folder = Folder(tmp_path)
    with Catalog(url) as catalog:
        catalog.add(NewSubscription("ann", "/a", id="q1"))
    database.stop()
    folder.publish("m0.xml", b"<a/>")
    with running(folder, "--catalog", url) as job:
        until_failing(job, "catalog-unreachable")
        database.start()
        until(lambda: folder.read() == 1, "the message")
        assert job.stop() == 0
    database.stop()
    with running(folder, "--catalog", url) as job:
        until_failing(job, "catalog-unreachable")
        assert job.stop() == 0
    database.start()
    assert [row["subscription"] for row in folder.deliveries()] == ["q1"]


def test_a_job_waits_for_its_store(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / "store").write_text("in the way")
    folder.publish("m0.xml", b"<a/>")
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "/a", id="q1"))
    with running(folder, "--store", str(tmp_path / "store")) as job:
        until_failing(job, "store-unreachable")
        (tmp_path / "store").unlink()
        until(lambda: folder.read() == 1, "the message")
        assert job.stop() == 0
    assert [row["subscription"] for row in folder.deliveries()] == ["q1"]
