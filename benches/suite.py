"""Runs all workloads of a folder: measures, confirms by lxml, checks the bars, records the results."""

import json
import platform
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.parsers import expat

import tamis
from benches import growth, sources, transform, upkeep
from benches.checks import Check, Confirmation, against, miscounted
from benches.one_query import times_faster_than_lxml
from benches.oracle import confirm
from benches.running import latency, start
from tamis.bench import CACHE_BYTES
from tamis.bench.measure import Result, measure
from tamis.cli.progress import bar


@dataclass
class Outcome:
    """The result of one run of a workload."""

    workload: str
    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Wrong answers: a match count other than expected, a difference to lxml."""
    skipped: str | None = None


def run_suite(folder: Path, *, only: Sequence[str] = (), rounds: int) -> Iterator[Outcome]:
    """Every run of every workload, each as soon as it is done."""
    for path in sorted(folder.glob("*.toml")):
        if only and path.stem not in only:
            continue
        runs = tomllib.loads(path.read_text("utf-8"))["run"]
        results: dict[str, Result] = {}
        transformed: dict[str, transform.TransformResult] = {}
        for run in runs:
            outcome = Outcome(path.stem, run["name"])
            try:
                if "growth" in run:
                    outcome.figures = growth.run(run["growth"], folder, rounds=rounds)
                elif "transform" in run:
                    transformed[run["name"]], outcome.figures, outcome.checks, outcome.problems = (
                        transform.run(run, folder, transformed, rounds=rounds)
                    )
                elif "spark" in run:
                    _spark(run, outcome, rounds)
                elif "latency" in run:
                    outcome.figures, outcome.checks, outcome.problems = latency.run(run)
                elif "start" in run:
                    outcome.figures, outcome.checks, outcome.problems = start.run(run)
                elif "serve" in run:
                    outcome.figures, outcome.checks, outcome.problems = _serve(run)
                elif "upkeep" in run:
                    outcome.figures, outcome.checks = upkeep.run(run, folder, rounds=rounds)
                else:
                    results[run["name"]] = _filter(run, folder, outcome, results, rounds)
            except sources.NoDataError as error:
                outcome.skipped = str(error)
            yield outcome


def _filter(
    run: Mapping[str, Any], folder: Path, outcome: Outcome, earlier: Mapping[str, Result], rounds: int
) -> Result:
    documents, queries = sources.load(run, folder)
    with bar(run["name"]) as report:
        result, index = measure(documents, queries, rounds=rounds, report=report)
    confirmation = confirm(index, documents, queries)
    outcome.figures = result.as_dict() | {
        "confirmed_pairs": confirmation.pairs,
        "confirmed_matches": confirmation.matches,
    }
    outcome.checks = list(_checks(run, result, earlier))
    outcome.problems = list(_problems(run, result, confirmation))
    if "lxml" in run.get("bars", {}):
        faster = times_faster_than_lxml(index, documents, queries)
        outcome.figures["faster_than_lxml"] = faster
        outcome.checks.append(
            Check("one query, × faster than lxml", faster, run["bars"]["lxml"], at_least=True)
        )
    return result


def _spark(run: Mapping[str, Any], outcome: Outcome, rounds: int) -> None:
    # Imported here: it needs a JVM.
    from benches.spark import measure as spark

    outcome.figures, outcome.checks, outcome.problems = spark.run(run, rounds=rounds)


def _serve(run: Mapping[str, Any]) -> tuple[dict[str, Any], list[Check], list[str]]:
    # Imported here: it needs a web framework and a JVM.
    from benches.running import serve

    return serve.run(run)


def _checks(run: Mapping[str, Any], result: Result, earlier: Mapping[str, Result]) -> Iterator[Check]:
    bars = run.get("bars", {})
    for name in ("read", "warm", "unseen", "cold"):
        if name in bars:
            yield Check(f"{name}, × expat", result.ratio(name), bars[name])
    if "load" in bars:
        yield Check(
            "loading, × faster than lxml compiles",
            result.lxml_compile_s / result.load_s,
            bars["load"],
            at_least=True,
        )
    if "index_bytes" in bars:
        yield Check("index bytes a query", result.index_bytes / max(result.distinct, 1), bars["index_bytes"])
    if "evaluated" in bars:
        evaluated = result.verified / max(result.matches, 1)
        yield Check("candidates evaluated a match", evaluated, bars["evaluated"])
    if bars:
        yield Check("caches, MiB", result.cache_bytes / (1 << 20), CACHE_BYTES / (1 << 20))
    yield from against(run, result, earlier)


def _problems(run: Mapping[str, Any], result: Result, confirmation: Confirmation) -> Iterator[str]:
    yield from miscounted(run, result.matches)
    if result.refused:
        yield f"{result.refused} queries were refused"
    yield from confirmation.problems("lxml")


def machine() -> dict[str, str]:
    """The properties of the machine that affect the figures, without its name."""
    return {
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "expat": expat.EXPAT_VERSION,
        "tamis": tamis.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def record(folder: Path, outcomes: Sequence[Outcome]) -> Path:
    """Write the results down under today's date."""
    now = datetime.now(UTC)
    path = folder / f"{now:%Y-%m-%d}.json"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"date": f"{now:%Y-%m-%d}", "machine": machine(), "outcomes": [_plain(one) for one in outcomes]}
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return path


def _plain(outcome: Outcome) -> dict[str, Any]:
    plain = asdict(outcome)
    for check, of in zip(plain["checks"], outcome.checks, strict=True):
        check["value"] = round(of.value, 4)
        check["met"] = of.met
    return plain
