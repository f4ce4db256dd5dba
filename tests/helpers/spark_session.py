"""A local Spark for tests: quiet, on loopback only, with all its files in a folder of the test."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

MASTER = "local[2,4]"
"""Two cores, and a task may fail thrice before its job does."""


def environment() -> dict[str, str]:
    """The environment of Spark's processes: loopback, and workers of this Python."""
    return {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def settings(folder: Path) -> dict[str, str]:
    """The settings of every Spark of the tests."""
    return {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


@contextmanager
def local_session(folder: Path, jars: Iterable[Path] = ()) -> Iterator[SparkSession]:
    """A Spark in this process, with libraries beside its own, ended afterwards."""
    os.environ.update(environment())
    builder = SparkSession.builder.master(MASTER).appName("tests")
    for name, value in settings(folder).items():
        builder = builder.config(name, value)
    builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def configured(session: SparkSession, values: Mapping[str, Any]) -> Iterator[None]:
    """Change settings during the block."""
    before = {name: session.conf.get(name) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            session.conf.set(name, old or "")


def frame(
    session: SparkSession | ConnectSession, folder: Path, columns: Mapping[str, Any], files: int = 1
) -> DataFrame:
    """Columns as a DataFrame, by way of Parquet files; each file is a partition."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(columns))
    rows = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * rows, rows), folder / f"{number}.parquet")
    return session.read.parquet(str(folder))
