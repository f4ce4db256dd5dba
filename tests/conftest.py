"""Shared fixtures: data that is not part of the project, databases, Spark, Kafka."""

import gzip
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers.servers import Postgres, mounted, postgres_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.demo.kafka_broker import Broker


QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""JVM options for a fast start: most tests of Spark start a JVM and stop it soon.

With one compiler the JVM reserves 48 MB for code, which many plans of joins fill.
"""


def pytest_configure() -> None:
    """Set these options for every Spark that the tests start."""
    for variable in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
        os.environ.setdefault(variable, QUICK)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need data if it is missing."""
    if not os.environ.get("TAMIS_DATA"):
        absent = pytest.mark.skip(reason="TAMIS_DATA names no folder with the shared data")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(absent)
    if not os.environ.get("TAMIS_SOAK"):
        long = pytest.mark.skip(reason="TAMIS_SOAK is not set: this takes minutes")
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(long)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the shared data."""
    return Path(os.environ["TAMIS_DATA"])


@pytest.fixture(scope="session")
def nitf_messages(data: Path) -> list[bytes]:
    """The 500 NITF documents, in name order."""
    with tarfile.open(data / "nitf" / "docs-500.tar.gz") as archive:
        members = sorted((m for m in archive if m.name.endswith(".xml")), key=lambda member: member.name)
        files = [archive.extractfile(member) for member in members]
        return [file.read() for file in files if file is not None]


@pytest.fixture(scope="session")
def nitf_paths(data: Path) -> list[str]:
    """The 153,928 distinct path queries."""
    with gzip.open(data / "nitf" / "paths-153928-distinct.txt.gz", "rt") as lines:
        return lines.read().splitlines()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new catalog, once for each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KB."""
    with mounted(tmp_path / "disk", "256k") as place:
        yield place


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """One local Spark with the Kafka connector, for all tests that use it."""
    from tamis.sources.kafka_jars import connector_jars
    from tests.helpers.spark_session import local_session

    with local_session(tmp_path_factory.mktemp("spark"), connector_jars()) as session:
        yield session


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Broker"]:
    """One Kafka broker for all tests that use it; topics get two partitions."""
    from tamis.demo.kafka_broker import Broker

    with Broker(tmp_path_factory.mktemp("kafka"), partitions=2) as broker:
        yield broker
