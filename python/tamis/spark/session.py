"""The Spark session of a job."""

import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from tamis.settings import Settings, TopicSink
from tamis.sources.kafka import KafkaSource
from tamis.sources.kafka_jars import connector_jars

QUIET = Path(__file__).with_name("log4j2.properties")
"""A log4j configuration that logs errors only."""

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # Micro-batches are small: adaptive planning costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # Python workers keep their open generations and caches.
    "spark.python.worker.reuse": "true",
}

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""An embedded Spark is not reachable from other hosts."""


def create_session(settings: Settings) -> SparkSession:
    """Create the session; `spark.config` of the settings overrides the defaults."""
    local = settings.spark.master.startswith("local")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    config = {**DEFAULTS, "spark.hadoop.fs.permissions.umask-mode": settings.umask}
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        config["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={QUIET}"
        config |= LOCAL | {"spark.local.dir": str(settings.state / "spark")}
    if any(isinstance(source, KafkaSource) for source in settings.sources) or any(
        isinstance(sink, TopicSink) for sink in settings.sinks
    ):
        config["spark.jars"] = ",".join(str(jar) for jar in connector_jars())
    config |= settings.spark.config
    builder = SparkSession.builder.master(settings.spark.master).appName("tamis")
    for name, value in config.items():
        builder = builder.config(name, value)
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
