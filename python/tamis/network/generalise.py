"""Generalisation: fewer and wider rows, to a budget (seed 001, section 7.3.2).

    wider_forms   a row → rows that it implies: fewer lines, `*` for names, `//` for `/`, ranges, short paths
    choose        the forms that replace most rows and let the fewest more messages of a sample cross

    /shop/item/@id=41, /shop/item/@id=47       →  /shop/item/@id>=40 and /shop/item/@id<50
    /shop/book/price=9, /shop/disc/price=9     →  /*/*/price=9

A chosen form is one more row of the table: it covers the rows that it is a form of, which are then not
advertised (`InterestTable`). So any choice is sound. Choosing is greedy, as for weighted set cover: the next
form is that with the least added traffic for each row that it saves. Cost: one pass of the sample over an
index of the most common forms, then a heap of them.
"""

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

import tamis
from tamis.model.matching import Line
from tamis.network.interest import Row, rows_of, text_of, weaker_forms

MOST_CANDIDATES = 2_000
"""Of the forms, so many that cover most rows are tried."""

MOST_PREFIXES = 4
"""Of a path, so many of its beginnings are forms, the longest ones."""

_STEP = re.compile(r"(//?)((?:[^/{]|\{[^}]*\})+)")
_EQUALITY = re.compile(r"=(\d{1,15})")


def wider_forms(row: Row) -> set[Row]:
    """The rows that this one implies, without itself: `weaker_forms`, and wider ones of each line."""
    forms = weaker_forms(row)
    for line in row:
        forms |= _forms_of(line)
    return forms - {row}


@lru_cache(1 << 16)
def _forms_of(line: Line) -> frozenset[Row]:
    found: set[Row] = set()
    for text in _texts(line):
        rows = rows_of(text)
        # As the neighbour reads it.
        if len(rows) == 1:
            found |= rows
    return frozenset(found)


def _texts(line: Line) -> Iterator[str]:
    """Queries that a line implies."""
    steps = [(step[1], step[2]) for step in _STEP.finditer(line.path)]
    if not line.text.startswith(line.path) or "".join(map("".join, steps)) != line.path:
        # Of the envelope.
        return
    test = line.text[len(line.path) :]
    elements = [step for step in steps if not step[1].startswith("@") and not step[1].endswith(")")]
    rest = "".join(map("".join, steps[len(elements) :]))
    if elements:
        last = elements[-1][1]
        yield f"//{last}{rest}{test}"
        stars = "".join(f"{axis}*" for axis, _ in elements[:-1])
        yield f"{stars}{elements[-1][0]}{last}{rest}{test}"
        for length in range(len(steps) - 1, max(0, len(steps) - 1 - MOST_PREFIXES), -1):
            yield "".join(map("".join, steps[:length]))
    if number := _EQUALITY.fullmatch(test):
        low, high = _bucket(int(number[1]))
        yield f"{line.path}>={low} and {line.path}<{high}"


def _bucket(value: int) -> tuple[int, int]:
    """The numbers with as many digits and the same first one: 47 → 40, 50."""
    size = 10 ** max(1, len(str(value)) - 1)
    low = value // size * size
    return low, low + size


def choose(
    rows: Mapping[str, Mapping[Row, Collection[Row]]],
    advertised: Mapping[str, Collection[Row]],
    surplus: int,
    sample: Sequence[tuple[str, bytes]],
) -> list[tuple[str, Row]]:
    """Forms with their tenants, which replace about `surplus` advertised rows, or fewer if that cannot be.

    `rows`: by tenant and form, the rows of the table that have it. `sample`: messages with their tenants.
    """
    candidates = [
        (tenant, form, covered & set(advertised[tenant]))
        for tenant, forms in rows.items()
        for form, covered in _most_common(forms)
    ]
    candidates = [one for one in candidates if len(one[2]) > 1]
    crossing = _matching([(tenant, row) for tenant, some in advertised.items() for row in some], sample)
    known = set().union(*crossing)
    added = _matching([(tenant, form) for tenant, form, _ in candidates], sample)
    gone: set[tuple[str, Row]] = set()

    def score(at: int) -> tuple[float, int]:
        """The messages that would cross in addition for each row that is saved, and these rows."""
        tenant, form, covered = candidates[at]
        saved = sum((tenant, row) not in gone for row in covered) - 1
        more = len(added[at] - known) + _doubt(form, len(sample))
        return (more / saved if saved > 0 else float("inf")), saved

    heap = [(score(at)[0], text_of(candidates[at][1]), at) for at in range(len(candidates))]
    heapq.heapify(heap)
    chosen: list[tuple[str, Row]] = []
    while heap and surplus > 0:
        _, text, at = heapq.heappop(heap)
        now, saved = score(at)
        if heap and now > heap[0][0]:
            if saved > 0:
                heapq.heappush(heap, (now, text, at))
            continue
        if saved <= 0:
            break
        tenant, form, covered = candidates[at]
        gone |= {(tenant, row) for row in covered}
        known |= added[at]
        surplus -= saved
        chosen.append((tenant, form))
    return chosen


def _doubt(form: Row, messages: int) -> float:
    """How many more messages may cross than a sample of so many shows: fewer with more steps and tests."""
    if not form:
        return messages + 1
    return 1 / sum(line.path.count("/") + 3 * (line.text != line.path) for line in form)


def _most_common(forms: Mapping[Row, Collection[Row]]) -> Iterable[tuple[Row, set[Row]]]:
    """The forms that cover most rows; always the empty one, which covers all."""
    most = heapq.nlargest(MOST_CANDIDATES, forms.items(), key=lambda one: (len(one[1]), text_of(one[0])))
    found = {form: set(covered) for form, covered in most}
    if frozenset() in forms:
        found[frozenset()] = set(forms[frozenset()])
    return found.items()


def _matching(rows: Sequence[tuple[str, Row]], sample: Sequence[tuple[str, bytes]]) -> list[set[int]]:
    """For each row, the messages of its tenant in the sample that satisfy it."""
    index = tamis.Index()
    columns = {
        "target": pa.array(range(len(rows)), pa.uint64()),
        "query": pa.array([text_of(row) for _, row in rows], pa.large_string()),
        "tenant": pa.array([tenant for tenant, _ in rows], pa.large_string()),
    }
    index.load(pa.table(columns))
    found: list[set[int]] = [set() for _ in rows]
    for at, (tenant, message) in enumerate(sample):
        for number in index.match(message, tenant=tenant):
            found[number].add(at)
    return found
