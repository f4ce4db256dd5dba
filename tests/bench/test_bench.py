"""The benchmarks on a tiny workload: tests the form of their output, not the figures."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benches import growth, saxon
from benches.__main__ import main as measure_by_hand
from benches.checks import Check
from benches.oracle import confirm
from benches.report import BEGIN, END, print_table, write_page
from benches.running.load import Stretch
from benches.suite import Outcome, run_suite
from benches.transform import TransformWorkload
from tamis import cli
from tamis.bench.files import read_queries
from tamis.bench.measure import build, measure
from tamis.workload import StockOptions, stock_messages, stock_subscriptions
from tests.helpers import ROOT

WORKLOADS = ROOT / "benches" / "workloads"

CONTRACT = re.findall(
    r"\w+",
    "queries, distinct, refused, documents, bytes, load_s, lxml_compile_s, cold_us, unseen_us, warm_us, "
    "read_us, expat_us, expat_version, matches, candidates, index_bytes, text_bytes, cache_bytes",
)

DOCUMENTS = {"a.xml": b"<a><b x='1'/></a>", "b.xml": b"<a><c>2</c></a>", "c.xml": b"<a/>"}
QUERIES = ["/a", "//b[@x = 1]", "/a", "/a/c[text() = '2']", "/a[namespace::b]"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder `docs` and a file `queries.txt`."""
    (tmp_path / "docs").mkdir()
    for name, content in DOCUMENTS.items():
        (tmp_path / "docs" / name).write_bytes(content)
    (tmp_path / "queries.txt").write_text("\n".join(QUERIES) + "\n\n", "utf-8")
    return tmp_path


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    result: dict[str, float] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return result


def test_bench_filter_ends_with_the_promised_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(
        [
            "bench",
            "filter",
            "--docs",
            str(files / "docs"),
            "--queries",
            str(files / "queries.txt"),
            "--rounds",
            "2",
        ]
    )
    assert code == 0
    result = last_line(capsys)
    assert set(CONTRACT) <= result.keys()
    assert (result["queries"], result["distinct"], result["refused"]) == (5, 3, 1)
    assert (result["documents"], result["bytes"]) == (3, sum(map(len, DOCUMENTS.values())))
    # `/a` thrice, the two others once.
    assert result["matches"] == 5
    assert all(result[name] > 0 for name in CONTRACT if name.endswith(("_us", "_s")))


def test_bench_stock_ends_with_the_promised_json(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--subscriptions", "20000", "--messages", "500", "--notifications", "500"]
    assert cli.main(["bench", "stock", *sizes, "--rounds", "1"]) == 0
    result = last_line(capsys)
    assert set(CONTRACT) <= result.keys()
    assert result["notifications"] == 500
    assert result["matches"] == pytest.approx(500, rel=0.3)


@pytest.mark.data
def test_bench_spark_ends_with_json() -> None:
    """In a child process, because it starts its own Spark."""
    sizes = {"queries": 100, "megabytes": 1, "subscriptions": 2_000, "rounds": 1}
    options = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benches", "spark", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["wrong"] == []
    assert result["messages"] == 500 * result["repeats"]
    assert result["dense_matches"] / result["dense_messages"] == pytest.approx(5_161, rel=0.01)
    for name in ("arrays_ratio", "rows_ratio", "outside_ratio", "lxml_factor", "xpath_boolean_factor"):
        assert result[name] > 0
    assert result["worker_shared_bytes"] > result["index_bytes"]


@pytest.mark.soak
def test_bench_latency_ends_with_json() -> None:
    sizes = {"rate": 20, "seconds": 5, "subscriptions": 2_000, "starts": 1}
    options = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benches", "latency", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["wrong"], result["messages"], result["subscriptions"]) == ([], 100, 2_000)
    assert 0 < result["median_s"] <= result["p99_s"] <= result["most_s"]
    assert result["start_ratio"] == pytest.approx(result["start_s"] / result["empty_start_s"], rel=1e-3)


@pytest.mark.soak
def test_bench_serve_ends_with_json() -> None:
    sizes = {"rate": 50, "seconds": 6, "subscriptions": 2_000, "subscribers": 3}
    options = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benches", "serve", "--kill", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["wrong"], result["messages"], result["distinct"]) == ([], 300, 2_000)
    assert 0 < result["median_s"] <= result["p90_s"] <= result["p99_s"] <= result["most_s"]
    assert result["kill"]["messages"] == 150
    assert result["kill"]["again"] >= result["kill"]["deliveries"] > 0


def test_a_rate_is_sustained_if_lag_does_not_grow() -> None:
    def stretch(wait: Callable[[float], float], **more: Any) -> Stretch:
        return Stretch(10, 30.0, waits=[(at / 10, wait(at / 10)) for at in range(300)], **more)

    assert stretch(lambda at: 1.0).is_held
    # A start that was slow is overcome.
    assert stretch(lambda at: max(1.0, 8.0 - at)).is_held
    assert not stretch(lambda at: 1.0 + at / 10).is_held
    # All in one batch: the growth of the lag is unknown.
    assert not stretch(lambda at: 40.0 - at).is_held
    assert not stretch(lambda at: 1.0, refused=1).is_held
    assert not stretch(lambda at: 1.0, late_s=5.0).is_held
    assert not Stretch(10, 30.0).is_held


def test_lxml_confirms_and_would_notice_a_difference() -> None:
    options = StockOptions(5_000, 200, 100)
    messages, subscriptions = (
        list(stock_messages(options, seed=1)),
        list(stock_subscriptions(options, seed=1)),
    )
    index, _, refused = build(subscriptions, messages)
    assert refused == 0
    confirmed = confirm(index, messages, subscriptions)
    assert confirmed.pairs == 50_000
    assert confirmed.differences == ()
    assert confirmed.matches > 10
    mistaken = ["/stock"] * len(subscriptions)
    assert len(confirm(index, messages, mistaken).differences) == 50_000 - confirmed.matches


def test_every_message_is_counted_once() -> None:
    documents = [b"<a/>", b"<b/>", b"<a/>", b"<a/>", b"<b/>"]
    result, _ = measure(documents, ["/a", "/b", "//a"], rounds=1)
    assert (result.documents, result.matches) == (5, 3 * 2 + 2)


def test_a_bar_is_kept_or_missed() -> None:
    assert Check("warm", 0.7, 0.75).met
    assert not Check("warm", 0.8, 0.75).met
    assert Check("load", 9, 8, at_least=True).met


def test_a_suite_reports_wrong_counts_and_missing_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAMIS_DATA", raising=False)
    (tmp_path / "small.toml").write_text(
        """
        [[run]]
        name = "small"
        stock = { subscriptions = 5_000, messages = 100, notifications = 50, seed = "1" }
        matches = -1
        bars = { warm = 1e9, load = 0.0 }

        [[run]]
        name = "large"
        stock = { subscriptions = 10_000, messages = 100, notifications = 50, seed = "1" }
        against = { run = "small", warm = 1e9 }

        [[run]]
        name = "forms"
        transform = { dtd = "list.dtd", documents = 10, number = 20, values = 3 }
        matches = -1
        bars = { warm = 1e9, saxon = 0.0 }

        [[run]]
        name = "absent"
        documents = "there/is/none"
        queries = "nor/these"
        """,
        "utf-8",
    )
    (tmp_path / "list.dtd").write_text(
        "<!ELEMENT list (item*)><!ELEMENT item (name, price)><!ELEMENT name (#PCDATA)>"
        "<!ELEMENT price (#PCDATA)>"
    )
    small, large, forms, absent = run_suite(tmp_path, rounds=1)
    assert [check.met for check in small.checks] == [True, True, True]
    assert len(small.problems) == 1
    assert "-1 are expected" in small.problems[0]
    assert [check.met for check in large.checks] == [True]
    assert [check.met for check in forms.checks] == [True, True]
    assert len(forms.problems) == 1
    assert absent.skipped is not None

    page = tmp_path / "performance.md"
    page.write_text(f"before\n{BEGIN}\nstale\n{END}\nafter\n", "utf-8")
    service = Outcome("serve", "the service", {"rate": 2_000, "median_s": 0.5})
    write_page(page, [small, large, forms, absent, service], "2001-01-01")
    text = page.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert "| small |" in text
    assert text.count("| forms |") == 4
    assert "| the service | sustained messages a second | 2,000 |" in text
    assert text.count("| the service |") == 2


def test_tables_are_for_terminals_too() -> None:
    from rich.console import Console

    console = Console(record=True, width=120)
    print_table([Outcome("w", "n", checks=[Check("warm, × expat", 0.5, 0.75)], problems=["bad"])], console)
    shown = console.export_text()
    assert "kept" in shown
    assert "WRONG" in shown


def test_the_workloads_of_the_project_say_what_they_need() -> None:
    names = set()
    for path in WORKLOADS.glob("*.toml"):
        for run in tomllib.loads(path.read_text("utf-8"))["run"]:
            names.add(run["name"])
            if not {"growth", "upkeep", "latency", "serve", "start"} & run.keys():
                assert "matches" in run, run["name"]
                assert (
                    {"stock", "spark", "transform"} & run.keys()
                    or {"documents", "queries"} <= run.keys()
                    or "generate" in run
                )
            if "against" in run:
                assert run["against"]["run"] in names, "a run is compared with an earlier one of its file"
    assert len(names) >= 15


def test_query_files_may_be_zipped_and_have_blank_lines(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "q.txt.gz").write_bytes(gzip.compress(b"/a\r\n\n/b\n"))
    assert read_queries(tmp_path / "q.txt.gz") == ("/a", "/b")


def test_bench_transform_ends_with_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["--dtd", str(WORKLOADS / "book.dtd"), "--values", "5", "--even"]
    documents, queries = str(tmp_path / "docs"), str(tmp_path / "queries.txt")
    assert cli.main(["generate", "docs", *shared, "-Q", "10", "-D", "5", "--output", documents]) == 0
    made = ["generate", "transformations", *shared, "-Q", "50", "-D1", "3", "--output", queries]
    assert cli.main(made) == 0
    options = ["--docs", documents, "--queries", queries, "--dtd", shared[1], "--rounds", "1"]
    assert measure_by_hand(["transform", *options, "--saxon"]) == 0
    result = last_line(capsys)
    assert (result["queries"], result["distinct"], result["refused"]) == (50, 50, 0)
    assert result["matches"] >= result["outputs"] > 0
    for name in ("cold_us", "warm_us", "schema_us", "match_us", "read_us", "expat_us", "saxon_us"):
        assert result[name] > 0


def test_saxon_confirms_outputs_and_would_notice_a_difference() -> None:
    parameters = {"dtd": "book.dtd", "documents": 20, "number": 100, "binding_depth": 3}
    documents, queries = TransformWorkload.of(parameters, WORKLOADS).generate()
    index, _, refused = build(queries, documents)
    assert refused == 0
    confirmed = saxon.confirm(index, documents, queries)
    assert (confirmed.pairs, confirmed.differences) == (2_000, ())
    assert confirmed.matches > 100
    mistaken = ["for $v in /book return <book/>"] * len(queries)
    assert len(saxon.confirm(index, documents, mistaken).differences) == 2_000


def test_transformations_have_workloads() -> None:
    runs = tomllib.loads((WORKLOADS / "transform.toml").read_text("utf-8"))["run"]
    for run in runs:
        workload = TransformWorkload.of(run["transform"], WORKLOADS)
        assert workload.number in (1_000, 10_000, 100_000)
        results = 8.5 if workload.ordered else 10 if run["name"].endswith("ten results") else 100
        assert run["matches"] / workload.documents == pytest.approx(results, rel=0.1)


def test_transformations_have_a_place_in_the_growth_plot() -> None:
    family = {"name": "lists", "transform": {"dtd": "book.dtd", "documents": 5, "number": 40, "values": 8}}
    points = growth.run({"sizes": [20, 40, 80], "family": [family]}, WORKLOADS, rounds=1)["lists"]
    assert [point["subscriptions"] for point in points] == [20, 40]
    assert all(point["warm_us"] > 0 for point in points)
