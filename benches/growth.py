"""How the cost of a message grows with the number of subscriptions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benches import sources
from benches.transform import TransformWorkload
from tamis.bench.measure import array, build, parse_with_expat, timed
from tamis.cli.progress import bar


def run(growth: Mapping[str, Any], folder: Path, *, rounds: int) -> dict[str, Any]:
    """For each family of queries and each size: µs a message, warm; and what expat takes.

    The smaller sets of a family are beginnings of its largest; sets of stock and of transformations are
    generated for each size, because the number of results must stay the same.
    """
    sizes: Sequence[int] = growth["sizes"]
    figures: dict[str, Any] = {}
    for family in growth["family"]:
        if "stock" in family:
            sets = [
                sources.load({"stock": family["stock"] | {"subscriptions": size}}, folder) for size in sizes
            ]
        elif "transform" in family:
            sets = list(_transformations(family["transform"], sizes, folder))
        else:
            documents, queries = sources.load(family, folder)
            sets = [(documents, queries[:size]) for size in sizes if size <= len(queries)]
        points = []
        with bar(family["name"]) as report:
            for done, (documents, queries) in enumerate(sets, start=1):
                points.append(_point(documents, queries, rounds, transform="transform" in family))
                report(done, len(sets))
        figures[family["name"]] = points
    return figures


def _transformations(
    largest: Mapping[str, Any], sizes: Sequence[int], folder: Path
) -> Iterator[tuple[list[bytes], list[str]]]:
    """As many values as transformations, so that the number of results stays the same."""
    for size in sizes:
        if size <= largest["number"]:
            values = max(1, largest["values"] * size // largest["number"])
            yield TransformWorkload.of({**largest, "number": size, "values": values}, folder).generate()


def _point(
    documents: Sequence[bytes], queries: Sequence[str], rounds: int, *, transform: bool
) -> dict[str, float]:
    index, _, _ = build(queries, documents)
    everything = array(documents)
    work: Callable[[Any], object] = index.transform_batch if transform else index.match_batch
    work(everything)
    warm: list[float] = []
    parse: list[float] = []
    for _ in range(rounds):
        parse.append(timed(parse_with_expat, documents)[0])
        warm.append(timed(work, everything)[0])
    each = 1e6 / len(documents)
    return {
        "subscriptions": len(queries),
        "warm_us": round(median(warm) * each, 3),
        "expat_us": round(median(parse) * each, 3),
    }
