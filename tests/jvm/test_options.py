"""The configuration of Spark: what the user sets comes first, and a cluster is left alone."""

from dataclasses import replace

import pytest

from tamis.jvm.launch import embedded_jvm
from tamis.jvm.options import JAVA_OPTIONS, spark_config
from tamis.settings import Settings, SparkSettings

SERIAL = "-XX:+UseSerialGC"


@pytest.fixture(autouse=True)
def no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)


def with_spark(master: str = "local[2]", **config: str) -> Settings:
    return replace(Settings(), spark=SparkSettings(master, config))


def test_an_embedded_spark_gets_a_small_jvm() -> None:
    assert SERIAL in spark_config(with_spark())[JAVA_OPTIONS].split()


def test_settings_of_the_user_take_precedence() -> None:
    config = spark_config(with_spark(**{JAVA_OPTIONS: "-Xss4m", "spark.ui.enabled": "true"}))
    assert (config[JAVA_OPTIONS], config["spark.ui.enabled"]) == ("-Xss4m", "true")


def test_a_garbage_collector_of_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseZGC")
    assert SERIAL not in spark_config(with_spark())[JAVA_OPTIONS]


def test_a_cluster_gets_no_jvm_of_ours() -> None:
    settings = with_spark("spark://host:7077")
    assert JAVA_OPTIONS not in spark_config(settings)
    assert "spark.python.daemon.module" not in spark_config(settings)
    with embedded_jvm(settings) as jvm:
        assert jvm is None
