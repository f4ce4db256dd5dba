"""The reference tables of the documents say what the code says: settings, columns, commands, error codes."""

import re
import tomllib
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from tamis import cli, settings
from tamis.data.source import RefreshedData
from tamis.model.sharding import ShardSettings
from tamis.service.errors import STATUS
from tamis.sinks.dead_letters import LETTER
from tamis.sinks.outbox import DELIVERY
from tests.helpers import ROOT

DIRECTORY_SOURCE, KAFKA_SOURCE = get_args(settings.Source)
LIMITS = get_type_hints(DIRECTORY_SOURCE)["limits"]
KAFKA_SINK = get_type_hints(settings.TopicSink)["kafka"]
KINDS = {
    "## Top level": (settings.Settings, {}),
    "## `[spark]`": (settings.SparkSettings, {}),
    "## `[shards]`": (ShardSettings, {}),
    "## `[metrics]`": (settings.MetricsSettings, {}),
    "## `[serve]`": (settings.ServeSettings, {}),
    "## `[webhooks]`": (settings.WebhookSettings, {}),
    "## `[broker]`": (settings.BrokerSettings, {}),
    "## `[[source]]`\n### A directory": (DIRECTORY_SOURCE, {"kind": '"directory"', "tenant": '""'}),
    "## `[[source]]`\n### Kafka": (KAFKA_SOURCE, {"kind": '"kafka"', "tenant": '""'}),
    "## `[[source]]`\n### `limits`": (LIMITS, {}),
    "## `[[data]]`": (RefreshedData, {}),
    "## `[[sink]]`\n### A directory": (settings.DirectorySink, {"kind": '"directory"'}),
    "## `[[sink]]`\n### Kafka": (KAFKA_SINK, {"kind": '"kafka"', "targets": "none"}),
    "## `[[sink]]`\n### The console": (settings.ConsoleSink, {"kind": '"console"'}),
}
"""The headings of the tables, the class of each, and the keys that the loader adds to it."""


def tables(page: str, first: str) -> dict[str, list[list[str]]]:
    """The rows of each table whose first column has this title, by the headings that it stands below."""
    found: dict[str, list[list[str]]] = {}
    headings: list[str] = []
    rows: list[list[str]] | None = None
    for line in (ROOT / "docs" / page).read_text("utf-8").splitlines():
        if line.startswith("#"):
            level = line.index(" ")
            headings = [one for one in headings if one.index(" ") < level and one.startswith("##")]
            headings.append(line)
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            rows = None
        elif rows is None:
            rows = [] if cells[0] != first else found.setdefault("\n".join(headings), [])
        elif set(cells[0]) != {"-"}:
            rows.append(cells)
    return found


def documented(default: str) -> Any:
    """The value that the column of defaults shows."""
    return (
        default
        if default in ("none", "required")
        else tomllib.loads(f"value = {default.strip('`')}")["value"]
    )


def declared(one: Field[Any]) -> Any:
    """The default of a class's field, as the page shows it."""
    if one.default is MISSING and one.default_factory is MISSING:
        return "required"
    value: Any = one.default_factory() if one.default_factory is not MISSING else one.default
    if value is None:
        return "none"
    if is_dataclass(value):
        return {}
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("heading", KINDS)
def test_every_setting_is_listed_with_its_default(heading: str) -> None:
    kind, added = KINDS[heading]
    rows = {cells[0].strip("`"): documented(cells[1]) for cells in tables("settings.md", "key")[heading]}
    expected = {one.name: declared(one) for one in fields(kind) if not is_table(one)}
    assert rows == expected | {name: documented(default) for name, default in added.items()}


def is_table(one: Field[Any]) -> bool:
    """Whether a key of the top level is a table."""
    return one.name in (
        "spark",
        "shards",
        "metrics",
        "serve",
        "webhooks",
        "broker",
        "sources",
        "sinks",
        "data",
    )


def test_every_table_of_settings_is_checked() -> None:
    assert tables("settings.md", "key").keys() == KINDS.keys()


def test_every_environment_variable_is_listed_with_its_flag() -> None:
    [rows] = tables("settings.md", "variable").values()
    assert {cells[0].strip("`"): cells[1].strip("`") for cells in rows} == settings.ENVIRONMENT
    for variable, name, flag in rows:
        plain = name.strip("`").removeprefix("serve.").replace(".", "-").replace("_", "-")
        assert flag.startswith(f"`--{plain}`"), variable


@pytest.mark.parametrize(("heading", "schema"), [("## Columns", DELIVERY), ("## Dead letters", LETTER)])
def test_every_column_is_listed_with_its_type(heading: str, schema: Any) -> None:
    rows = [(name.strip("`"), kind) for name, kind, _ in tables("outbox.md", "column")[heading]]
    kinds = {one.name: str(one.type).replace("tz=", "") for one in schema}
    assert rows == [(one.name, kinds[one.name] + ", null" * one.nullable) for one in schema]


def test_every_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    helped = set(re.findall(r"^ {4}([a-z-]+)\b", capsys.readouterr().out, re.MULTILINE))
    [rows] = [rows for heading, rows in tables("commands.md", "command").items() if "Exit" not in heading]
    assert {cells[0].strip("`").split()[1].strip("`") for cells in rows} == helped


def codes(page: str, first: str, column: int) -> list[str]:
    """The codes that a column of a page's only table with this first title names, in order."""
    [rows] = tables(page, first).values()
    return [code for cells in rows for code in re.findall(r"`([a-z0-9-]+)`", cells[column])]


def test_every_code_of_the_reader_is_listed() -> None:
    listed = codes("sources.md", "codes", 0)
    written = set()
    for file in (ROOT / "src" / "document").rglob("*.rs"):
        # Names of encodings look like codes.
        if "tests" not in file.as_posix() and file.name != "charset.rs":
            written |= set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', file.read_text("utf-8")))
    assert set(listed) - {"truncated"} == written - {"utf-8", "utf-16", "us-ascii"}
    assert len(listed) == len(set(listed))


def test_every_status_of_the_service_is_listed() -> None:
    [rows] = tables("service.md", "status").values()
    listed = {code: int(cells[0]) for cells in rows for code in re.findall(r"`([a-z-]+)`", cells[1])}
    assert listed == STATUS
