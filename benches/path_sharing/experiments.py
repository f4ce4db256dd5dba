"""The experiments of seed 001 §6.7, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

DEGREES = ("F", "FW", "FWR")
OPTIMISATIONS = ("none", "query", "dtd")
EVERY_PLAN = tuple(f"{degree}-{optimisation}" for optimisation in OPTIMISATIONS for degree in DEGREES)
CLAIMED_PLANS = tuple(f"{degree}-{claims}" for claims in ("query", "dtd") for degree in ("FW", "FWR"))
BEST_PLANS = tuple(f"{degree}-dtd" for degree in DEGREES)

BIBLIOGRAPHY: Mapping[str, Any] = {
    "dtd": "bibliography.dtd",
    "document_depth": 4,
    "repeats": 5,
    "repeats_of": {"book": 20},
    "binding_depth": 2,
}
BOOK: Mapping[str, Any] = {
    "dtd": "book.dtd",
    "document_depth": 5,
    "repeats": 4,
    "repeats_of": {"section": 12},
    "binding_depth": 3,
}

DOCUMENTS = 40
FEWER = 12
"""Documents for the largest sets: enough, as each query is run on every one."""


@dataclass(frozen=True)
class Experiment:
    """A workload by the fields of `TransformWorkload`, and what runs on it."""

    figure: str
    """Of the seed; what belongs to one is plotted together."""
    at: int
    """Where on the figure's x axis, if it has one."""
    settings: tuple[str, ...]
    workload: Mapping[str, Any] = field(default_factory=dict)


def experiments() -> Iterator[Experiment]:
    """All of them."""

    def of(
        figure: str, at: int, settings: tuple[str, ...], base: Mapping[str, Any], **more: Any
    ) -> Experiment:
        return Experiment(figure, at, settings, {"documents": DOCUMENTS, **base, **more})

    yield of("6.7", 5_000, EVERY_PLAN, BIBLIOGRAPHY, number=5_000)
    for paths in (1, 2, 3):
        yield of("6.8", paths, BEST_PLANS, BIBLIOGRAPHY, number=5_000, predicates=paths)
    for paths in (1, 2, 3, 4):
        yield of("6.9", paths, BEST_PLANS, BIBLIOGRAPHY, number=5_000, returns=paths)
    yield of("6.10", 10_000, EVERY_PLAN, BOOK, number=10_000)
    for percent in (5, 10, 20, 30, 40):
        yield of("DSProb", percent, CLAIMED_PLANS, BOOK, number=10_000, descendant=percent / 100)
    for number in (5_000, 10_000, 20_000, 40_000):
        yield of("6.11", number, BEST_PLANS, BIBLIOGRAPHY, number=number, values=100)
    shared = ("FWR-dtd", "shared")
    for number in (10_000, 20_000, 30_000, 40_000, 50_000, 100_000):
        yield of("6.12", number, shared, BOOK, number=number, documents=FEWER)
    # Not of the seed: so many values that about a hundred queries match a document.
    for number in (10_000, 30_000, 100_000):
        yield of("6.12 rare", number, shared, BOOK, number=number, documents=FEWER, values=number * 6 // 100)
