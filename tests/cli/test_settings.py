"""Settings: a file, the environment, flags; and what is refused."""

from pathlib import Path

import pytest

from tamis.model.matching import Limits
from tamis.settings import ConsoleSink, DirectorySink, SettingsError, TopicSink, load_settings
from tamis.sources.directory import DirectorySource
from tamis.sources.kafka import KafkaSource

TEXT = """
catalog = "subscriptions.db"
cache = "cache"
interval = 1

[spark]
master = "local[2]"
config = { "spark.driver.memory" = "2g" }

[metrics]
port = 9464

[[source]]
name = "news"
path = "in"
tenant = "acme"
record = "item"
limits = { depth = 12 }

[[source]]
kind = "kafka"
name = "trades"
servers = "localhost:9092"
topics = "trades"

[[sink]]
path = "out"
form = "jsonl"

[[sink]]
kind = "kafka"
servers = "localhost:9092"
topic = "to-{tenant}"
targets = ["kafka"]

[[sink]]
kind = "console"
limit = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "tamis.toml"
    file.write_text(TEXT)
    return file


def test_a_file_says_it_all_and_paths_are_relative_to_it(file: Path) -> None:
    settings = load_settings(file, environment={})
    folder = file.parent
    assert settings.catalog == str(folder / "subscriptions.db")
    assert settings.state == folder / "state"
    assert settings.cache == str(folder / "cache")
    assert settings.generations == str(folder / "state" / "generations")
    assert settings.checkpoint("news") == folder / "state" / "checkpoints" / "news"
    assert (settings.interval, settings.metrics.port) == (1.0, 9464)
    assert settings.spark.config == {"spark.driver.memory": "2g"}
    (news, trades) = settings.sources
    assert isinstance(news, DirectorySource)
    assert (news.path, news.tenant, news.record, news.limits.depth) == (folder / "in", "acme", "item", 12)
    assert isinstance(trades, KafkaSource)
    assert trades.topics == ("trades",)
    (outbox, topics, console) = settings.sinks
    assert outbox == DirectorySink(str(folder / "out"), "jsonl")
    assert isinstance(topics, TopicSink)
    assert topics.targets == ("kafka",)
    assert console == ConsoleSink(3)


def test_the_environment_comes_before_the_file_and_flags_before_both(file: Path) -> None:
    environment = {"TAMIS_CATALOG": "postgresql://db/tamis", "TAMIS_SPARK_MASTER": "spark://m:7077"}
    environment |= {"TAMIS_METRICS_PORT": "1"}
    settings = load_settings(file, {"spark.master": "local[1]", "store": None}, environment)
    assert settings.catalog == "postgresql://db/tamis"
    assert settings.spark.master == "local[1]"
    assert settings.spark.config == {"spark.driver.memory": "2g"}
    assert settings.metrics.port == 1


def test_without_a_file_it_is_the_embedded_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(environment={})
    (source,) = settings.sources
    assert isinstance(source, DirectorySource)
    assert source.path == tmp_path / "inbox"
    assert settings.sinks == (DirectorySink(str(tmp_path / "outbox")),)
    assert settings.spark.master == "local[*]"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("catalog = = 1", "bad-toml", "line 1"),
        ("intervall = 2", "unknown-setting", "interval"),
        ("interval = 'soon'", "bad-setting", "interval"),
        ("interval = -1", "bad-setting", "interval"),
        ("[webhooks]\nallow = ['localhost']", "bad-setting", "localhost"),
        ("[webhooks]\nallow = 1", "bad-setting", "names"),
        ("[webhooks]\nschedule = 5", "bad-setting", "schedule"),
        ("[webhooks]\nschedule = [1, 'x']", "bad-setting", "schedule"),
        ("[webhooks]\nschedule = [-1]", "bad-setting", "schedule"),
        ("[webhooks]\ntimeout = 0", "bad-setting", "timeout"),
        ("[webhooks]\nconcurrency = 0", "bad-setting", "concurrency"),
        ("[webhooks]\ntimeouts = 1", "unknown-setting", "timeout"),
        ("webhooks = 1", "bad-setting", "[webhooks]"),
        ("[source]\nname = 'x'", "bad-setting", "[[source]]"),
        ("[[source]]\nname = 'x'", "missing-setting", "path"),
        ("[[source]]\nkind = 'ftp'\nname = 'x'", "unknown-kind", "ftp"),
        ("[[source]]\nname = 'a/b'\npath = 'x'", "bad-name", "a/b"),
        ("[[source]]\nname = 'x'\npath = 'a'\n[[source]]\nname = 'x'\npath = 'b'", "two-sources", "x"),
        ("[[source]]\nname = 'x'\npath = 'a'\nlimits = { deep = 1 }", "unknown-setting", "depth"),
        ("[[source]]\nname = 'x'\npath = 'a'\nlimits = { depth = '5 miles' }", "bad-setting", "5 miles"),
        ("[[source]]\nname = 'x'\npath = 'a'\nafter = 'burn'", "bad-after", "burn"),
        ("[[sink]]\nform = 'csv'", "bad-form", "csv"),
        ("[[sink]]\npath = 'x'\n[[sink]]\npath = 'x'", "two-outboxes", "path"),
        ("[[sink]]\ntargets = ['x']", "no-sink", "targets"),
        ("[[sink]]\nkind = 'kafka'\nservers = 'x'\ntopic = '{id}'", "bad-topic", "id"),
        ("[metrics]\nport = true", "bad-setting", "port"),
        ("[serve]\njob = 'no'", "bad-setting", "job"),
        ("[serve]\nrate = 0", "bad-setting", "rate"),
        ("[serve]\nwebhooks = 1", "unknown-setting", "backlog"),
    ],
)
def test_invalid_settings_are_refused_with_their_position(
    text: str, code: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "tamis.toml"
    file.write_text(text)
    with pytest.raises(Exception, match=code) as refused:
        load_settings(file, environment={})
    assert said in str(refused.value)


def test_sizes_of_limits_have_units(tmp_path: Path) -> None:
    file = tmp_path / "tamis.toml"
    file.write_text(
        "[[source]]\nname = 'x'\npath = 'a'\nlimits = { document = '64MiB', depth = 9, text = '1_000 kB' }"
    )
    [source] = load_settings(file, environment={}).sources
    assert source.limits == Limits(document=64 << 20, depth=9, text=1_000_000)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no-settings"):
        load_settings(tmp_path / "none.toml", environment={})


def test_a_misspelt_key_lists_tables_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text("intervall = 1\n")
    with pytest.raises(SettingsError, match=r"the keys are \[\[sink\]\], \[\[source\]\], broker, cache, "):
        load_settings(tmp_path / "tamis.toml")
