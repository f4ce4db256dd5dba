"""Results for people: a table on the terminal, the same in docs/performance.md, plots beside it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benches.suite import Outcome, machine

BEGIN, END = (
    "<!-- figures: `make bench` writes what stands between these two lines -->",
    "<!-- end of figures -->",
)

FIGURES_WITHOUT_BAR: Mapping[str, Mapping[str, str]] = {
    "spark": {
        "dense_ratio": "thousands of matches a message, an array a message, × identity",
        "lxml_factor": "a query and a message by lxml in `mapInPandas`, × tamis",
        "xpath_boolean_factor": "a query and a message by `xpath_boolean`, × tamis",
        "subscriptions": "subscriptions of the workers whose memory is measured",
        "worker_private_bytes": "private bytes of such a worker",
        "worker_shared_bytes": "bytes that it shares with other workers",
    },
    "serve": {
        "rate": "sustained messages a second",
        "median_s": "from the moment a message is due to its delivery, median, s",
        "p99_s": "from the moment a message is due to its delivery, 99 of 100, s",
    },
}
"""Names of the reported figures that have no bar, by workload."""


def print_table(outcomes: Iterable[Outcome], console: Console) -> None:
    """One line for each bar."""
    table = Table("workload", "figure", "measured", "bar", "", title="against the bars")
    for outcome in outcomes:
        rows = _rows(outcome)
        for at, row in enumerate(rows):
            table.add_row(outcome.name if at == 0 else "", *row, end_section=at == len(rows) - 1)
    console.print(table)


def _rows(outcome: Outcome) -> list[tuple[str, str, str, str]]:
    if outcome.skipped is not None:
        return [(f"skipped: {outcome.skipped}", "", "", "")]
    rows = [
        (
            check.name,
            _figure(check.value),
            f"{'≥' if check.at_least else '≤'} {_figure(check.bar)}",
            "kept" if check.met else "MISSED",
        )
        for check in outcome.checks
    ]
    return rows + [(problem, "", "", "WRONG") for problem in outcome.problems]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write_page(path: Path, outcomes: Sequence[Outcome], date: str) -> None:
    """Put today's figures into the page, between its two marks."""
    page = path.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{path} has no place for figures")
    path.write_text(
        "".join([before, BEGIN, "\n\n", "\n".join(_page(outcomes, date)), "\n\n", END, after]), "utf-8"
    )


def _page(outcomes: Sequence[Outcome], date: str) -> list[str]:
    about = machine()
    lines = [
        f"Measured {date} on one thread of a {about['processor']} ({about['system']}), "
        f"Python {about['python']}, {about['expat']}, tamis {about['tamis']}.",
        "",
        "| workload | cold | unseen | warm | read | expat | matches | candidates | index, bytes a query |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_result_row(outcome) for outcome in outcomes if "candidates" in outcome.figures]
    lines += [
        "",
        "Times are µs a document; matches and candidates are per document.",
        "",
        "| workload | cold | warm | with the DTD | match | expat | Saxon | results | constructed | bytes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_transform_row(outcome) for outcome in outcomes if "saxon_us" in outcome.figures]
    lines += [
        "",
        "Results, those of them that had to be constructed, and their bytes are per document, too.",
        "",
        "| workload | figure | measured | bar | |",
        "|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        lines += [f"| {outcome.name} | {' | '.join(row)} |" for row in _rows(outcome)]
    lines += ["", "| workload | figure | measured |", "|---|---|---|"]
    for outcome in outcomes:
        figure_names = FIGURES_WITHOUT_BAR.get(outcome.workload, {})
        lines += [
            f"| {outcome.name} | {name} | {_figure(outcome.figures[figure])} |"
            for figure, name in figure_names.items()
            if figure in outcome.figures
        ]
    return lines


def _result_row(outcome: Outcome) -> str:
    figures: Mapping[str, Any] = outcome.figures
    documents = max(figures["documents"], 1)
    cells = [
        outcome.name,
        *(f"{figures[f'{name}_us']:.1f}" for name in ("cold", "unseen", "warm", "read", "expat")),
        f"{figures['matches'] / documents:,.1f}",
        f"{figures['candidates'] / documents:,.1f}",
        f"{figures['index_bytes'] / max(figures['distinct'], 1):.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _transform_row(outcome: Outcome) -> str:
    figures: Mapping[str, Any] = outcome.figures
    times = (figures[f"{name}_us"] for name in ("cold", "warm", "schema", "match", "expat", "saxon"))
    counts = (figures[name] / max(figures["documents"], 1) for name in ("matches", "outputs", "output_bytes"))
    cells = [
        outcome.name,
        *("" if time is None else f"{time:,.1f}" for time in times),
        *(f"{count:,.1f}" for count in counts),
    ]
    return f"| {' | '.join(cells)} |"


def plot_growth(folder: Path, figures: Mapping[str, Sequence[Mapping[str, float]]]) -> Path:
    """µs a message against subscriptions, both logarithmic, with expat's own time beside it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, (times, ratios) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, points in figures.items():
        sizes = [point["subscriptions"] for point in points]
        (line,) = times.plot(sizes, [point["warm_us"] for point in points], marker="o", label=name)
        times.plot(sizes, [point["expat_us"] for point in points], linestyle=":", color=line.get_color())
        relative = [point["warm_us"] / point["expat_us"] for point in points]
        ratios.plot(sizes, relative, marker="o", color=line.get_color(), label=name)
    times.set(xscale="log", yscale="log", xlabel="subscriptions", ylabel="µs a message, warm (dotted: expat)")
    ratios.set(xscale="log", xlabel="subscriptions", ylabel="× expat", ylim=(0, None))
    ratios.axhline(1, color="grey", linewidth=0.8)
    for axes in (times, ratios):
        axes.grid(alpha=0.3)
        axes.legend()
    path = folder / "growth.svg"
    # No date in the file: the same figures give the same file.
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
