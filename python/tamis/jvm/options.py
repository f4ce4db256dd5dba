"""Settings → Spark's configuration. `spark.config` overrides everything here."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tamis.settings import Settings, TopicSink
from tamis.sources.kafka import KafkaSource
from tamis.sources.kafka_jars import connector_jars

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

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

LOCAL = {
    # An embedded Spark is not reachable from other hosts.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

SERIAL = "-XX:+UseSerialGC"

SMALL_JVM = (
    # Other JVMs lack some of the options.
    "-XX:+IgnoreUnrecognizedVMOptions",
    # The optimising compiler takes more time than it saves: the work on messages is done by the kernel.
    "-XX:TieredStopAtLevel=1",
    SERIAL,
    "-XX:-UsePerfData",
    f"-Dlog4j2.configurationFile={QUIET}",
)
"""JVM options of an embedded Spark."""

ENVIRONMENT = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
"""Environment variables with options for every JVM. The JVM refuses two garbage collectors."""


def is_local(settings: Settings) -> bool:
    """Whether Spark is embedded."""
    return settings.spark.master.startswith("local")


def spark_config(settings: Settings) -> dict[str, str]:
    """The configuration of the session."""
    config = {**DEFAULTS, "spark.hadoop.fs.permissions.umask-mode": settings.umask}
    if is_local(settings):
        config |= LOCAL | {
            "spark.local.dir": str(settings.state / "spark"),
            JAVA_OPTIONS: _java_options(),
        }
    if any(isinstance(source, KafkaSource) for source in settings.sources) or any(
        isinstance(sink, TopicSink) for sink in settings.sinks
    ):
        config["spark.jars"] = ",".join(str(jar) for jar in connector_jars())
    return {**config, **settings.spark.config}


def has_own_java_options(config: Mapping[str, str]) -> bool:
    """Whether the user replaced the JVM options."""
    return config.get(JAVA_OPTIONS) != _java_options()


def _java_options() -> str:
    """The options of a small JVM; another garbage collector that the environment selects stays."""
    options = " ".join(os.environ.get(name, "") for name in ENVIRONMENT)
    chosen = re.search(r"-XX:\+Use\w+GC\b", options) is not None
    return " ".join(option for option in SMALL_JVM if not (chosen and option == SERIAL))
