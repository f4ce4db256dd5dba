"""Runs the examples of README and docs; checks that the files and functions of ARCHITECTURE exist."""

import doctest
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis import cli
from tamis.model.batch import Batch
from tamis.settings import load_settings
from tamis.sinks.outbox import Outbox
from tests.helpers import ROOT
from tests.helpers.delivery_rows import batches, delivery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
SPARK, RELATIONAL, OUTBOX = "spark.md", "relational.md", "outbox.md"
"""Their examples have a Spark at hand, and a folder or an outbox."""
SERVICE = "service.md"
"""Its examples have a service at hand: `test_service_page.py`."""


def run_examples(page: Path, given: dict[str, Any]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), given, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test)
    assert runner.summarize().failed == 0


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in (SPARK, RELATIONAL, OUTBOX, SERVICE)],
    ids=lambda page: page.name,
)
def test_python_examples(page: Path) -> None:
    run_examples(page, {})


@pytest.mark.parametrize("name", [SPARK, RELATIONAL])
def test_python_examples_on_spark(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    run_examples(ROOT / "docs" / name, {"spark": spark, "folder": tmp_path})


def test_the_outbox_is_read_as_the_page_says(spark: "SparkSession", tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    story, title = b"<story><company symbol='QLT'/></story>", b"<title>Up</title>"
    for number, row in enumerate([
        delivery(1, "ann", payload=story) | {"subscription": "qlt"},
        delivery(2, "bob", "acme", title) | {"subscription": "news"},
    ]):  # fmt: skip
        batch = Batch("c", number)
        outbox.publish(batch, outbox.write(batch, 0, batches([row])))
    outbox.write(Batch("c", 2), 0, batches([delivery(3)]))  # not published
    run_examples(ROOT / "docs" / OUTBOX, {"spark": spark, "outbox": tmp_path / "outbox"})


@pytest.mark.parametrize("page", [*PAGES, CONTRIBUTING], ids=lambda page: page.name)
def test_console_examples(
    page: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `$ tamis …` line that shows its output must print it; the page's first message is `order.xml`."""
    text = page.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for message in re.findall(r"```xml\n(.*?)```", text, re.DOTALL)[:1]:
        Path("order.xml").write_text(message, "utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = example.partition("\n")
            program, *arguments = shlex.split(command, comments=True)
            if program == "tamis" and expected.strip():
                cli.main(arguments)
                assert capsys.readouterr().out.strip() == expected.strip(), command


def test_the_settings_that_are_shown_are_settings(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "tamis.toml"
    file.write_text(shown)
    settings = load_settings(file, environment={})
    assert [source.name for source in settings.sources] == ["news", "trades"]
    assert len(settings.sinks) == 3


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md", CONTRIBUTING], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def arrows() -> list[tuple[str, str]]:
    """The (file, function) pairs of ARCHITECTURE.md: `file` · `function`."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    return re.findall(r"`([\w/.]+\.(?:rs|py))` · `([\w:.]+)`", text)


def test_architecture_names_both_flows() -> None:
    assert len(arrows()) >= 12


@pytest.mark.parametrize(("file", "function"), arrows())
def test_functions_named_by_architecture_exist(file: str, function: str) -> None:
    name = re.split(r"::|\.", function)[-1]
    assert re.search(rf"\b(fn|def|class|struct|enum|trait|mod) {name}\b", (ROOT / file).read_text("utf-8"))


def test_architecture_names_no_missing_file() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for path in re.findall(r"`((?:src|python|tests|benches|docs)/[\w/.]+\.\w+)`", text):
        assert (ROOT / path).exists(), path
