"""The Spark session of a job, created in a thread while the rest of the job starts."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress

from pyspark.sql import SparkSession

from tamis.jvm.launch import Jvm
from tamis.jvm.options import is_local, spark_config
from tamis.settings import Settings


@contextmanager
def early_session(settings: Settings, jvm: Jvm | None = None) -> Iterator[Callable[[], SparkSession]]:
    """Begin to create the session; the function waits for it. It is stopped afterwards."""
    with ThreadPoolExecutor(1, "spark-session") as executor:
        created = executor.submit(create_session, settings, jvm)
        try:
            yield created.result
        finally:
            # If it could not be created, the job has reported why.
            with suppress(Exception):
                created.result().stop()


def create_session(settings: Settings, jvm: Jvm | None = None) -> SparkSession:
    """Create the session, in `jvm` if it has been launched."""
    config = spark_config(settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local(settings):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(settings.spark.master).appName("tamis")
    for name, value in config.items():
        builder = builder.config(name, value)
    with nullcontext() if jvm is None else jvm.connection():
        session = _create(builder)
    cores = session.sparkContext.defaultParallelism
    if "spark.sql.shuffle.partitions" not in settings.spark.config:
        session.conf.set("spark.sql.shuffle.partitions", str(cores))
    return session


def _create(builder: SparkSession.Builder) -> SparkSession:
    """Create a session and keep our handler of Ctrl-C: PySpark installs its own, which interrupts the job."""
    handler = signal.getsignal(signal.SIGINT)
    session: SparkSession = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
    return session
