"""Settings from `tamis.toml`, the environment and flags; later ones override earlier ones.

Paths are relative to the settings file; without a file, to the working directory.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from tamis.data.source import RefreshedData
from tamis.errors import TamisError
from tamis.model.matching import Limits
from tamis.model.sharding import Placement, ShardSettings
from tamis.model.sizes import size_of
from tamis.model.subscription import DEFAULT_TARGET
from tamis.model.webhook import webhook_of
from tamis.network.topology import DEFAULT_FILE as NETWORK_FILE
from tamis.network.topology import read_topology
from tamis.sinks.addresses import Addresses
from tamis.sources.arrivals import ArrivalsSource
from tamis.sources.directory import DirectorySource
from tamis.sources.kafka import KafkaSink, KafkaSource

DEFAULT_FILE = "tamis.toml"

LONGEST_PAUSE, LONGEST_TIMEOUT = 7 * 86_400, 300
"""Upper bounds in seconds: between two attempts of a webhook, and for one attempt."""

T = TypeVar("T")


class SettingsError(TamisError):
    """Invalid settings; the reason names the table and key."""


@dataclass(frozen=True, slots=True)
class DirectorySink:
    """An outbox."""

    path: str = "outbox"
    form: Literal["parquet", "jsonl", "xml"] = "parquet"
    targets: tuple[str, ...] | None = None
    """Only deliveries with these targets; None: all."""

    def __post_init__(self) -> None:
        if self.form not in ("parquet", "jsonl", "xml"):
            raise SettingsError("bad-form", f"a directory's form is parquet, jsonl or xml, not {self.form!r}")


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Topics of Kafka."""

    kafka: KafkaSink
    targets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """The terminal, for a look at deliveries."""

    limit: int = 10
    """Lines per batch."""
    targets: tuple[str, ...] | None = None


Source: TypeAlias = DirectorySource | KafkaSource
Input: TypeAlias = Source | ArrivalsSource
Sink: TypeAlias = DirectorySink | TopicSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where the job runs."""

    master: str = "local[*]"
    config: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark by name."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """The Prometheus endpoint; off without a port."""

    host: str = "127.0.0.1"
    port: int | None = None


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The service, `tamis serve`."""

    host: str = "127.0.0.1"
    port: int = 8080
    job: bool = True
    """Whether the service starts the job; false if it runs elsewhere."""
    rate: int = 200
    """Requests a second per token; a token can have its own limit."""
    body: int = 16 << 20
    """Bytes of one request; a token can have its own limit."""
    backlog: int = 100_000
    """Messages that may wait in an inbox; above it, publishing is refused."""
    timeout: float = 60.0
    """Seconds for the head of a request to arrive, for its body, and for a response to be read."""
    keep: float = 7.0
    """Days to keep accepted ids and acknowledged deliveries."""
    data_body: int = 1 << 30
    """Bytes of one upload of local data, instead of `body`."""
    data_timeout: float = 600.0
    """Seconds for such an upload to arrive, instead of `timeout`."""

    def __post_init__(self) -> None:
        if not isinstance(self.job, bool):
            raise SettingsError("bad-setting", f"[serve]: job is true or false, not {self.job!r}")
        for name in ("rate", "body", "backlog", "data_body"):
            if getattr(self, name) < 1:
                raise SettingsError("bad-setting", f"[serve]: {name} is at least 1")
        for name in ("timeout", "keep", "data_timeout"):
            if not 0 < getattr(self, name) < float("inf"):
                raise SettingsError("bad-setting", f"[serve]: {name} is more than 0")


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """How the service sends to webhooks."""

    allow: tuple[str, ...] = ()
    """Private networks that may be sent to, also without TLS: `127.0.0.1/32`."""
    schedule: tuple[float, ...] = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
    """Seconds before each retry, with jitter; after the last one a delivery is a dead letter."""
    timeout: float = 15.0
    """Seconds for one request."""
    concurrency: int = 64
    """Concurrent requests."""

    def __post_init__(self) -> None:
        try:
            Addresses(self.allow)
        except ValueError as error:
            raise SettingsError("bad-setting", f"[webhooks]: allow: {error}") from error
        if any(not 0 <= pause <= LONGEST_PAUSE for pause in self.schedule):
            reason = f"[webhooks]: schedule has seconds from 0 to {LONGEST_PAUSE}"
            raise SettingsError("bad-setting", reason)
        if not 0 < self.timeout <= LONGEST_TIMEOUT:
            reason = f"[webhooks]: timeout is more than 0 and at most {LONGEST_TIMEOUT} s"
            raise SettingsError("bad-setting", reason)
        if self.concurrency < 1:
            raise SettingsError("bad-setting", "[webhooks]: concurrency is at least 1")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """This broker in a network."""

    name: str
    network: Path = Path(NETWORK_FILE)
    """The file with all brokers and links."""
    hops: int = 32
    """A message that crossed more links is a dead letter."""
    limits: Limits = field(default_factory=Limits)
    """The limits of messages that arrive over links."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of this broker's Kafka clients for links, such as its password."""
    log: int = 1 << 30
    """Bytes that the log of a link may have to send before sources wait."""
    rows: int | None = None
    """So many rows are advertised to a neighbour at most; None: any number."""

    def __post_init__(self) -> None:
        if self.hops < 1:
            raise SettingsError("bad-setting", "[broker]: hops is at least 1")
        if self.log < 1:
            raise SettingsError("bad-setting", "[broker]: log is at least 1 byte")
        if self.rows is not None and self.rows < 1:
            raise SettingsError("bad-setting", "[broker]: rows is at least 1")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. The defaults are the embedded job: local Spark, an inbox, an outbox, SQLite."""

    catalog: str = "tamis.db"
    state: Path = Path("state")
    """Durable state of the job: checkpoints, batches, its working index."""
    store: str | None = None
    """The store of generations, visible to all hosts; below `state` unless given."""
    cache: str | None = None
    """A directory on each host for copies of the store's files; None: the store is mapped in place."""
    dead_letters: str = "dead-letters"
    umask: str = "077"
    """Permissions that files and folders of the job and the service do not get, in octal."""
    interval: float = 0.5
    """Minimum seconds between the starts of two batches."""
    sample: bool = True
    """Whether to keep a few messages, by which generations are compiled, below `state`."""
    spark: SparkSettings = field(default_factory=SparkSettings)
    shards: ShardSettings = field(default_factory=ShardSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    broker: BrokerSettings | None = None
    """Without it, this is the only broker."""
    sources: tuple[Source, ...] = (DirectorySource(name="inbox", tenant="", path=Path("inbox")),)
    sinks: tuple[Sink, ...] = (DirectorySink(),)
    data: tuple[RefreshedData, ...] = ()
    """Local data that is read again and again from its source."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Everything that the job reads: its sources, and what arrives over links."""
        if self.broker is None:
            return self.sources
        return (*self.sources, ArrivalsSource(self.links, self.broker.limits))

    @property
    def links(self) -> Path:
        """The state of the links of this broker."""
        return self.state / "network"

    def brokers(self) -> tuple[str, ...]:
        """All brokers of the network; none without a `[broker]`. Reads the file that names them."""
        return () if self.broker is None else read_topology(self.broker.network).brokers

    @property
    def generations(self) -> str:
        """The URL of the store."""
        return self.store or str(self.state / "generations")

    @property
    def whole_outbox(self) -> DirectorySink | None:
        """The first outbox with all deliveries as rows, if any."""
        for sink in self.sinks:
            if isinstance(sink, DirectorySink) and sink.targets is None and sink.form != "xml":
                return sink
        return None

    def has_target(self, target: str) -> bool:
        """Whether a delivery target leads anywhere: a sink lists it, or it is a webhook or the default."""
        listed = any(target in (sink.targets or ()) for sink in self.sinks)
        return listed or target == DEFAULT_TARGET or webhook_of(target) is not None

    def checkpoint(self, source: str) -> Path:
        """The checkpoint directory of a source."""
        return self.state / "checkpoints" / source


ENVIRONMENT = {
    "TAMIS_CATALOG": "catalog",
    "TAMIS_STATE": "state",
    "TAMIS_STORE": "store",
    "TAMIS_CACHE": "cache",
    "TAMIS_DEAD_LETTERS": "dead_letters",
    "TAMIS_INTERVAL": "interval",
    "TAMIS_SPARK_MASTER": "spark.master",
    "TAMIS_METRICS_HOST": "metrics.host",
    "TAMIS_METRICS_PORT": "metrics.port",
    "TAMIS_SERVE_HOST": "serve.host",
    "TAMIS_SERVE_PORT": "serve.port",
}
"""Environment variables and their settings; flags have the same names."""


def load_settings(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings of a file, the environment and flags by the names of `ENVIRONMENT`'s values.

    Without `file`, reads `tamis.toml` if it exists.
    """
    if file is None and Path(DEFAULT_FILE).exists():
        file = Path(DEFAULT_FILE)
    content = {} if file is None else _read(file)
    folder = Path() if file is None else file.parent
    settings = _settings(content, folder)
    for variable, name in ENVIRONMENT.items():
        if variable in environment:
            settings = _with(settings, name, environment[variable], variable)
    for name, value in (flags or {}).items():
        if value is not None:
            settings = _with(settings, name, value, f"--{name.replace('.', '-').replace('_', '-')}")
    _check(settings)
    return settings


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError("bad-toml", f"{file}: {error}") from error
    except OSError as error:
        raise SettingsError("no-settings", f"{file}: {error.strerror}") from error


def _settings(content: Mapping[str, Any], folder: Path) -> Settings:
    values = dict(content)
    parsed: dict[str, Any] = {}
    if "spark" in values:
        parsed["spark"] = _value(SparkSettings, values.pop("spark"), "[spark]")
    if "shards" in values:
        parsed["shards"] = _value(ShardSettings, values.pop("shards"), "[shards]")
    if "metrics" in values:
        parsed["metrics"] = _value(MetricsSettings, values.pop("metrics"), "[metrics]")
    if "serve" in values:
        parsed["serve"] = _value(ServeSettings, values.pop("serve"), "[serve]")
    if "webhooks" in values:
        parsed["webhooks"] = _webhooks(values.pop("webhooks"))
    if "broker" in values:
        parsed["broker"] = _broker(values.pop("broker"), folder)
    if "source" in values:
        tables = enumerate(_tables(values.pop("source"), "source"), 1)
        parsed["sources"] = tuple(_source(table, folder, f"[[source]] {place}") for place, table in tables)
    elif "broker" in parsed:
        # A broker may only pass on.
        parsed["sources"] = ()
    else:
        parsed["sources"] = (DirectorySource(name="inbox", tenant="", path=(folder / "inbox").absolute()),)
    if "sink" in values:
        tables = enumerate(_tables(values.pop("sink"), "sink"), 1)
        parsed["sinks"] = tuple(_sink(table, folder, f"[[sink]] {place}") for place, table in tables)
    else:
        parsed["sinks"] = (DirectorySink(str((folder / "outbox").absolute())),)
    tables = enumerate(_tables(values.pop("data", []), "data"), 1)
    parsed["data"] = tuple(_data(table, folder, f"[[data]] {place}") for place, table in tables)
    if "sources" in values or "sinks" in values:
        raise SettingsError("unknown-setting", "sources and sinks are tables: [[source]], [[sink]]")
    settings = _value(Settings, {**values, **parsed}, "the settings")
    return replace(
        settings,
        state=(folder / settings.state).absolute(),
        catalog=_catalog(settings.catalog, folder),
        store=_url(settings.store, folder),
        cache=_url(settings.cache, folder),
        dead_letters=_url(settings.dead_letters, folder) or "",
    )


def _broker(table: Any, folder: Path) -> BrokerSettings:
    values = dict(table) if isinstance(table, Mapping) else table
    if isinstance(values, dict) and "limits" in values:
        values["limits"] = _value(Limits, values["limits"], "limits of [broker]")
    broker = _value(BrokerSettings, values, "[broker]")
    return replace(broker, network=(folder / broker.network).absolute())


def _webhooks(table: Any) -> WebhookSettings:
    values = dict(table) if isinstance(table, Mapping) else table
    if isinstance(values, dict):
        if "allow" in values:
            values["allow"] = _names(values["allow"])
        if "schedule" in values:
            values["schedule"] = _seconds(values["schedule"], "[webhooks]: schedule")
    return _value(WebhookSettings, values, "[webhooks]")


def _source(table: Mapping[str, Any], folder: Path, where: str) -> Source:
    values = {"tenant": "", **table}
    kind = values.pop("kind", "directory")
    if "limits" in values:
        values["limits"] = _limits(values["limits"], f"limits of {where}")
    if isinstance(values.get("schema"), str):
        values["schema"] = str(folder / values["schema"])
    if kind == "directory":
        if "path" in values:
            values["path"] = (folder / values["path"]).absolute()
        return _value(DirectorySource, values, where)
    if kind == "kafka":
        for name in ("topics", "headers"):
            if name in values:
                values[name] = _names(values[name])
        return _value(KafkaSource, values, where)
    raise SettingsError("unknown-kind", f"{where}: a source is a directory or kafka, not {kind!r}")


def _data(table: Mapping[str, Any], folder: Path, where: str) -> RefreshedData:
    values = dict(table)
    if "path" in values:
        values["path"] = (folder / values["path"]).absolute()
    if "index" in values:
        values["index"] = _names(values["index"])
    return _value(RefreshedData, values, where)


def _limits(table: Any, where: str) -> Limits:
    """Limits, with sizes as numbers or as strings: `"64MiB"`."""
    if isinstance(table, Mapping):
        try:
            table = {name: size_of(one) if isinstance(one, str) else one for name, one in table.items()}
        except ValueError as error:
            raise SettingsError("bad-setting", f"{where}: {error}") from error
    return _value(Limits, table, where)


def _sink(table: Mapping[str, Any], folder: Path, where: str) -> Sink:
    values = dict(table)
    kind = values.pop("kind", "directory")
    targets = _names(values.pop("targets")) if "targets" in values else None
    if kind == "directory":
        values["path"] = _url(values.get("path", "outbox"), folder)
        return _value(DirectorySink, {**values, "targets": targets}, where)
    if kind == "kafka":
        return TopicSink(_value(KafkaSink, values, where), targets)
    if kind == "console":
        return _value(ConsoleSink, {**values, "targets": targets}, where)
    raise SettingsError("unknown-kind", f"{where}: a sink is a directory, kafka or console, not {kind!r}")


def _value(kind: type[T], values: Any, where: str) -> T:
    """An instance of a class from a TOML table; unknown and missing keys are errors."""
    if not isinstance(values, Mapping):
        raise SettingsError("bad-setting", f"{where} is a table of settings")
    hints = get_type_hints(kind)
    for name in values:
        if name not in hints:
            tables = {"sources": "[[source]]", "sinks": "[[sink]]"} if kind is Settings else {}
            names = ", ".join(sorted(tables.get(key, key) for key in hints))
            raise SettingsError("unknown-setting", f"{where}: unknown key {name!r}; the keys are {names}")
    for one in fields(kind):  # type: ignore[arg-type]  # all kinds are dataclasses
        if one.name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise SettingsError("missing-setting", f"{where}: {one.name} is needed")
    return kind(**{name: _plain(hints[name], value, f"{where}: {name}") for name, value in values.items()})


def _plain(hint: Any, value: Any, where: str) -> Any:
    """Convert a plain value to the type of its hint."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    plain_kinds = [kind for kind in kinds if kind in (int, float, str, Path)]
    if not plain_kinds or value is None:
        return value
    kind = plain_kinds[0]
    try:
        if isinstance(value, bool) or (kind is str and not isinstance(value, str)):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError) as error:
        raise SettingsError("bad-setting", f"{where} has to be {kind.__name__}, not {value!r}") from error


def _with(settings: Settings, name: str, value: Any, where: str) -> Settings:
    """The settings with one key, by its dotted name, replaced."""
    head, _, rest = name.partition(".")
    if rest:
        inner = getattr(settings, head)
        plain = _plain(get_type_hints(type(inner))[rest], value, where)
        return replace(settings, **{head: replace(inner, **{rest: plain})})
    return replace(settings, **{head: _plain(get_type_hints(Settings)[head], value, where)})


def _check(settings: Settings) -> None:
    """Refuse settings that would fail later."""
    if not settings.inputs:
        raise SettingsError("no-source", "a job without a [[source]] or a [broker] has nothing to do")
    names = [source.name for source in settings.inputs]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError("two-sources", f"two sources are called {name!r}: message ids would clash")
        if not name or name in (".", "..") or "/" in name:
            raise SettingsError("bad-name", f"a source cannot be called {name!r}: it names a folder")
    if all(sink.targets is not None for sink in settings.sinks):
        reason = "every [[sink]] has targets: deliveries with others would be lost; leave them out of one"
        raise SettingsError("no-sink", reason)
    paths = [sink.path for sink in settings.sinks if isinstance(sink, DirectorySink)]
    if len(set(paths)) < len(paths):
        raise SettingsError("two-outboxes", "two [[sink]] have one path: each needs its own")
    if not re.fullmatch("0?[0-7]{3}", settings.umask):
        raise SettingsError(
            "bad-setting", f"umask has three octal digits, such as 077, not {settings.umask!r}"
        )
    if settings.interval < 0:
        raise SettingsError("bad-setting", "interval is a number of seconds, not negative")
    shards = settings.shards
    if shards.rows == 0 or min(shards.rows or 0, shards.open) < 0:
        raise SettingsError("bad-setting", "[shards]: rows is at least 1, open at least 0")
    if shards.placement not in get_args(Placement):
        raise SettingsError("bad-setting", f"[shards]: placement is one of {get_args(Placement)}")


def _tables(value: Any, name: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(table, Mapping) for table in value):
        raise SettingsError("bad-setting", f"write [[{name}]], once for each")
    return value


def _names(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SettingsError("bad-setting", f"a list of names is needed, not {value!r}")
    return tuple(names)


def _seconds(value: Any, where: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise SettingsError("bad-setting", f"{where} is a list of seconds, not {value!r}")
    return tuple(_plain(float, one, where) for one in value)


def _url(value: str | None, folder: Path) -> str | None:
    """A URL unchanged; a path relative to the settings file."""
    return value if value is None or "://" in value else str((folder / value).absolute())


def _catalog(value: str, folder: Path) -> str:
    return value if "://" in value else str(folder / value)
