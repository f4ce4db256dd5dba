"""The experiments plotted, the seed's own figures beside ours where it gives them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benches.path_sharing import seed_figures as seed
from benches.path_sharing.experiments import DEGREES, OPTIMISATIONS

mpl.use("Agg")
from matplotlib import pyplot as plt

# Ids by content: the same figures give the same file.
plt.rcParams["svg.hashsalt"] = "tamis"

LABELS = {"none": "no optimisation", "query": "by query", "dtd": "by query and DTD"}
COLOURS = dict(zip(seed.OPERATORS, plt.rcParams["axes.prop_cycle"].by_key()["color"], strict=False))


def plot(folder: Path, figures: Mapping[str, Any]) -> None:
    """Two files."""
    folder.mkdir(parents=True, exist_ok=True)
    _degrees(folder / "path-sharing.svg", figures)
    _growth(folder / "shared-network.svg", figures)


def _degrees(path: Path, figures: Mapping[str, Any]) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    bibliography, book = figures["6.7"]["5000"], figures["6.10"]["10000"]
    sets = (
        ("bibliography, 5,000 queries", bibliography, seed.BIBLIOGRAPHY_OPERATORS),
        ("book, 10,000 queries", book, seed.BOOK_OPERATORS),
    )
    for row, (name, found, of_seed) in zip(axes, sets, strict=True):
        _alternatives(row[0], name, found["settings"])
        _operators(row[1], found["settings"], of_seed)
    _save(figure, path)


def _alternatives(axes: Any, name: str, settings: Mapping[str, Any]) -> None:
    for at, degree in enumerate(DEGREES):
        times = [settings[f"{degree}-{optimisation}"]["us"] / 1e3 for optimisation in OPTIMISATIONS]
        axes.bar([place + 0.27 * (at - 1) for place in range(3)], times, 0.25, label=f"PathSharing-{degree}")
    axes.set(title=name, ylabel="ms a document", xticks=range(3))
    axes.set_xticklabels([LABELS[optimisation] for optimisation in OPTIMISATIONS])
    axes.legend()


def _operators(axes: Any, settings: Mapping[str, Any], of_seed: Mapping[str, Sequence[float]]) -> None:
    """Stacked by operator, as shares of the whole without optimisation: machines differ."""
    ours = {
        optimisation: [
            settings[f"FWR-{optimisation}"]["operators_us"][operator] for operator in seed.OPERATORS
        ]
        for optimisation in OPTIMISATIONS
    }
    for offset, costs in ((-0.2, of_seed), (0.2, ours)):
        whole = sum(costs["none"])
        for place, optimisation in enumerate(OPTIMISATIONS):
            bottom = 0.0
            for operator, cost in zip(seed.OPERATORS, costs[optimisation], strict=True):
                label = operator if (offset, place) == (-0.2, 0) else None
                axes.bar(place + offset, cost / whole, 0.36, bottom, color=COLOURS[operator], label=label)
                bottom += cost / whole
            axes.text(place + offset, bottom + 0.01, "seed" if offset < 0 else "here", ha="center")
    axes.set(title="PathSharing-FWR by operator", ylabel="share of no optimisation", xticks=range(3))
    axes.set_xticklabels([LABELS[optimisation] for optimisation in OPTIMISATIONS])
    axes.legend()


def _growth(path: Path, figures: Mapping[str, Any]) -> None:
    figure, axes = plt.subplots(2, 4, figsize=(17, 8), layout="constrained")
    for place, (name, label) in enumerate(
        (("6.8", "predicate paths"), ("6.9", "return paths"), ("6.11", "queries, bibliography"))
    ):
        for degree in DEGREES:
            _line(axes[0][place], figures[name], f"{degree}-dtd", f"PathSharing-{degree}")
        axes[0][place].set(xlabel=label, ylabel="ms a document", ylim=(0, None))
    axes[0][0].set_xticks([1, 2, 3])
    axes[0][1].set_xticks([1, 2, 3, 4])
    _descendants(axes[0][3], axes[1][3], figures["DSProb"])
    seeds, ours, rare = axes[1][:3]
    seeds.plot(list(seed.UNSHARED), list(seed.UNSHARED.values()), marker="o", label="PathSharing-FWR")
    shared = seed.SHARED | dict([seed.SHARED_AT_MOST])
    seeds.plot(list(shared), list(shared.values()), marker="o", label="shared post-processing")
    seeds.set(title="book: the seed")
    for panel, name, title in (
        (ours, "6.12", "book: here"),
        (rare, "6.12 rare", "book: here, about 100 results a document"),
    ):
        _line(panel, figures[name], "FWR-dtd", "PathSharing-FWR")
        _line(panel, figures[name], "shared", "the shared network")
        panel.set(title=title)
    for panel in axes[1][:3]:
        panel.set(xlabel="queries", ylabel="ms a document", xscale="log", yscale="log")
    for panel in axes.flat:
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    _save(figure, path)


def _descendants(times: Any, hashed: Any, found: Mapping[str, Any]) -> None:
    """The cost of more `//` steps on the recursive book, and the number of operators that hash for them."""
    for claims in ("query", "dtd"):
        for degree in ("FW", "FWR"):
            _line(times, found, f"{degree}-{claims}", f"PathSharing-{degree}, {LABELS[claims]}")
        settings = [one["settings"][f"FWR-{claims}"] for one in found.values()]
        counts = [setting["semijoins"]["hash"] + setting["outer_joins"]["hash"] for setting in settings]
        hashed.plot([int(at) for at in found], counts, marker="o", label=LABELS[claims])
    times.set(xlabel="steps by //, %", ylabel="ms a document", ylim=(0, None))
    hashed.set(title="book: joins by hash", xlabel="steps by //, %", ylabel="joins", ylim=(0, None))


def _line(axes: Any, found: Mapping[str, Any], setting: str, label: str) -> None:
    times = [one["settings"][setting]["us"] / 1e3 for one in found.values()]
    axes.plot([int(at) for at in found], times, marker="o", label=label)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
