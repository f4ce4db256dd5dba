"""How the cost of a message grows with the number of subscriptions."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tamis.bench import sources
from tamis.bench.measure import array, build, parse_with_expat, timed
from tamis.progress import bar


def run(growth: Mapping[str, Any], *, rounds: int) -> dict[str, Any]:
    """For each family of queries and each size: µs a message, warm; and what expat takes.

    The smaller sets of a family are beginnings of its largest; stock sets are made anew for each size,
    because the number of notifications is to stay the same.
    """
    sizes: Sequence[int] = growth["sizes"]
    figures: dict[str, Any] = {}
    for family in growth["family"]:
        if "stock" in family:
            sets = [sources.load({"stock": family["stock"] | {"subscriptions": size}}) for size in sizes]
        else:
            documents, queries = sources.load(family)
            sets = [(documents, queries[:size]) for size in sizes if size <= len(queries)]
        points = []
        with bar(family["name"]) as report:
            for done, (documents, queries) in enumerate(sets, start=1):
                points.append(_point(documents, queries, rounds))
                report(done, len(sets))
        figures[family["name"]] = points
    return figures


def _point(documents: Sequence[bytes], queries: Sequence[str], rounds: int) -> dict[str, float]:
    index, _, _ = build(queries, documents)
    everything = array(documents)
    index.match_batch(everything)
    warm: list[float] = []
    parse: list[float] = []
    for _ in range(rounds):
        parse.append(timed(parse_with_expat, documents)[0])
        warm.append(timed(index.match_batch, everything)[0])
    each = 1e6 / len(documents)
    return {
        "subscriptions": len(queries),
        "warm_us": round(median(warm) * each, 3),
        "expat_us": round(median(parse) * each, 3),
    }
