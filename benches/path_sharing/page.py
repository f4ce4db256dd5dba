"""The experiments' tables in docs/performance.md, between their two marks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benches.path_sharing import seed_figures as seed
from benches.path_sharing.experiments import OPTIMISATIONS
from benches.path_sharing.plots import LABELS

BEGIN, END = (
    "<!-- path sharing: `make bench` writes what stands between these two lines -->",
    "<!-- end of path sharing -->",
)


def write_page(path: Path, figures: Mapping[str, Any]) -> None:
    """Put the figures into the page."""
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{path} has no place for path sharing")
    path.write_text("".join([before, BEGIN, "\n\n", "\n".join(_page(figures)), "\n\n", END, after]), "utf-8")


def _page(figures: Mapping[str, Any]) -> Iterator[str]:
    yield "| operators of PathSharing-FWR | | semijoins, hash | merge | outer joins, hash | merge | DupElim |"
    yield "|---|---|---|---|---|---|---|"
    yield from _profile("bibliography", figures["6.7"]["5000"], seed.BIBLIOGRAPHY_PROFILE)
    yield from _profile("book", figures["6.10"]["10000"], seed.BOOK_PROFILE)
    yield ""
    yield "The dissertation's figures are in brackets."
    yield ""
    yield "| book, queries | plans that differ | PathSharing-FWR, ms | the network, ms | results a document |"
    yield "|---|---|---|---|---|"
    for at, found in figures["6.12"].items():
        yield _growth_row(int(at), found, seed.UNIQUE_PLANS, seed.UNSHARED, seed.SHARED)
    for at, found in figures["6.12 rare"].items():
        yield _growth_row(int(at), found, {}, {}, {})


def _profile(name: str, found: Mapping[str, Any], of_seed: Mapping[str, Sequence[int]]) -> Iterator[str]:
    for optimisation in OPTIMISATIONS:
        setting = found["settings"][f"FWR-{optimisation}"]
        counts = (
            *(setting[kind][by] for kind in ("semijoins", "outer_joins") for by in ("hash", "merge")),
            setting["eliminations"],
        )
        pairs = zip(counts, of_seed[optimisation], strict=True)
        cells = [f"{count:,} ({seeds:,})" for count, seeds in pairs]
        yield f"| {name} | {LABELS[optimisation]} | {' | '.join(cells)} |"


def _growth_row(
    number: int,
    found: Mapping[str, Any],
    plans: Mapping[int, int],
    unshared: Mapping[int, int],
    shared: Mapping[int, int],
) -> str:
    def beside(ours: str, seeds: Mapping[int, int]) -> str:
        return f"{ours} ({seeds[number]:,})" if number in seeds else ours

    settings = found["settings"]
    cells = [
        f"{number:,}",
        beside(f"{settings['shared']['plans']:,}", plans),
        beside(f"{settings['FWR-dtd']['us'] / 1e3:.2f}", unshared),
        beside(f"{settings['shared']['us'] / 1e3:.2f}", shared),
        f"{found['matches'] / found['documents']:,.0f}",
    ]
    return f"| {' | '.join(cells)} |"
