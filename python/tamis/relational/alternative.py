"""Queries → rows: an alternative of a query's decomposition as one row, with all its lines.

The seed's Predicate_Unroll table (004, section 4.3), where BrPred is columns: which anchors stand where on
each line.

    //item[price > 50][tag = 'sale']
      access   //item/tag = 'sale'          the line that the first join looks up
      lines    //item/tag = 'sale'   under anchor 0, which stands at step 0 of the path
               //item/price > 50     likewise
      anchors  0: needs 2 (as many lines and anchors hang from it directly), below the document
      needs    1 (so many of them hang from the document)

A row is right for joins alone if it has no `reason`: then the query matches where all lines have hits that
agree on the nodes of the anchors, and no negated line has a hit. Otherwise that is necessary, and the query
is verified.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.engine import Namespaces, decompose

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LINES = 32
"""Lines of an alternative that are joined; a longer one is verified."""

MAX_LEVELS = 8
"""Anchors above one another that are joined; deeper ones are verified."""

TEXT_BYTES = 64
"""What a value table keeps of a text."""

TOO_MANY_LINES = f"an alternative has more than {MAX_LINES} lines"
TOO_DEEP = f"more than {MAX_LEVELS} branch points lie inside one another"
NORMALIZED = "white space is normalised"
COUNTED = "a position counts what other predicates leave"
ENVELOPE = "the envelope is asked"

ENVELOPE_STEP = "$envelope"
"""The name that the kernel writes for the envelope in paths, which no message can contain."""

TEXT, NUMBER, PATH, ALWAYS = "text", "number", "path", "always"
"""What the first join looks up: a text or a number at a path, the path alone, or nothing."""


@dataclass(frozen=True, slots=True)
class RefusedQuery:
    """A query that is none, by its place."""

    query: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A query that was accepted, by its place, with its rows."""

    query: int
    id: str
    canonical: str
    rows: Sequence[dict[str, Any]]
    paths: Mapping[int, tuple[str, str, int]]
    """Linear paths by their hash: text, kind of node at the end (element, attribute, text), element steps."""


def decomposed(
    queries: Sequence[str], namespaces: Namespaces | None = None
) -> Iterator[Decomposed | RefusedQuery]:
    """The rows of each query; refused ones first."""
    parts = decompose(queries, namespaces)
    for row in parts.errors.select(["query", "code", "reason"]).to_pylist():
        yield RefusedQuery(**row)
    steps = _by_query(parts.steps.select(["query", "name", "namespace"]))
    lines = _by_query(parts.lines)
    alternatives = _by_query(parts.alternatives)
    for row in parts.queries.to_pylist():
        place = row["query"]
        own = lines.get(place, [])
        rows = []
        paths: dict[int, tuple[str, str, int]] = {}
        for alternative in alternatives.get(place, []):
            built = _Alternative(alternative, own, steps.get(place, [])).row()
            if built is not None:
                rows.append(built)
                for line in (*built["lines"], *built["negative"]):
                    paths[line["path"]] = line.pop("text_of_path")
        yield Decomposed(place, row["id"], row["canonical"], rows, paths)


def _by_query(table: "pa.RecordBatch") -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in table.to_pylist():
        found.setdefault(row["query"], []).append(row)
    return found


class _Alternative:
    """One alternative, on its way to a row."""

    def __init__(self, alternative: dict[str, Any], lines: list[Any], steps: list[Any]) -> None:
        self.number = alternative["alternative"]
        self.positive = [lines[at] for at in dict.fromkeys(alternative["positive"])]
        self.negative = [lines[at] for at in dict.fromkeys(alternative["negative"])]
        self.steps = steps
        self.anchors = set(alternative["anchors"])
        self.reason = alternative["reason"]
        if alternative["counted"] is not None:
            self.reason = self.reason or COUNTED

    def row(self) -> dict[str, Any] | None:
        """The row; None if no message satisfies it."""
        if any(_never_holds(line) for line in self.positive):
            return None
        self._drop_envelope()
        negative = [self._line(line, []) for line in self.negative if not _never_holds(line)]
        if any(line["operator"] == "normalize-space =" for line in negative):
            # Weaker: without the negated line.
            negative = [line for line in negative if line["operator"] != "normalize-space ="]
            self.reason = self.reason or NORMALIZED
        if len(self.positive) > MAX_LINES:
            self.reason = self.reason or TOO_MANY_LINES
            self.positive = sorted(self.positive, key=_selectivity)[:MAX_LINES]
        if len(negative) > MAX_LINES:
            self.reason = self.reason or TOO_MANY_LINES
            negative = negative[:MAX_LINES]
        levels = [[step for step in line["steps"] if step in self.anchors] for line in self.positive]
        if any(len(own) > MAX_LEVELS for own in levels):
            self.reason = self.reason or TOO_DEEP
            self.anchors, levels = set(), [[] for _ in levels]
        anchors = _tree(levels)
        lines = [
            self._line(line, [line["steps"].index(step) for step in own], anchors[own[-1]][0] if own else -1)
            for line, own in zip(self.positive, levels, strict=True)
        ]
        unique = {repr(sorted(line.items())): line for line in lines}
        lines = sorted(unique.values(), key=_rank)
        return {
            "alternative": self.number,
            "access": _access(lines),
            "lines": lines,
            "negative": negative,
            "anchors": [
                {"level": level, "parent": parent, "needs": _hanging(lines, anchors, number)}
                for number, level, parent in sorted(anchors.values())
            ],
            "needs": _hanging(lines, anchors, -1),
            "reason": self.reason,
        }

    def _drop_envelope(self) -> None:
        """Value tables have no envelopes."""
        asks = [line for line in (*self.positive, *self.negative) if ENVELOPE_STEP in line["path"]]
        if asks:
            self.reason = self.reason or ENVELOPE
            self.positive = [line for line in self.positive if line not in asks]
            self.negative = [line for line in self.negative if line not in asks]

    def _line(self, line: dict[str, Any], places: list[int], anchor: int = -1) -> dict[str, Any]:
        operator, text, number = line["operator"], line["text"], line["number"]
        if operator == "normalize-space =":
            if line in self.positive:
                self.reason = self.reason or NORMALIZED
                operator, text = "exists", None
        elif operator == "!=" and number is not None and math.isnan(number):
            operator, number = "exists", None
        subject = line["subject"]
        if subject == "position" and self.steps[line["step"]]["name"] is None:
            subject = "element position"
        kind = {"attribute": "attribute", "text": "text"}.get(line["subject"], "element")
        return {
            "path": line["path_hash"],
            "text_of_path": (line["path"], kind, len(line["steps"])),
            "subject": subject,
            "operator": operator,
            "text": None if text is None else cut(text),
            "length": line["length"] if text is not None else None,
            "hash": line["hash"] if text is not None else None,
            "number": None if number is None else number + 0.0,
            "places": places,
            "anchor": anchor,
        }


def cut(text: str) -> str:
    """A text as value tables keep it: at most 64 bytes, cut between characters."""
    return text if len(text) <= TEXT_BYTES // 4 else text.encode()[:TEXT_BYTES].decode(errors="ignore")


def _never_holds(line: dict[str, Any]) -> bool:
    number = line["number"]
    return number is not None and math.isnan(number) and line["operator"] != "!="


def _tree(levels: Iterable[list[int]]) -> dict[int, tuple[int, int, int]]:
    """Anchors by their steps: number, how many anchors down to it, the number of the one above, or -1."""
    found: dict[int, tuple[int, int, int]] = {}
    for own in levels:
        for level, step in enumerate(own, 1):
            if step not in found:
                found[step] = (len(found), level, found[own[level - 2]][0] if level > 1 else -1)
    return found


def _hanging(lines: list[dict[str, Any]], anchors: Mapping[int, tuple[int, int, int]], anchor: int) -> int:
    parents = [*(line["anchor"] for line in lines), *(parent for _, _, parent in anchors.values())]
    return parents.count(anchor)


def _selectivity(line: dict[str, Any]) -> tuple[int, int, str]:
    """Equalities before ranges, texts before numbers, long before short; the same at any time."""
    equal = line["operator"] == "=" and line["subject"] not in ("position", "element position")
    order = 0 if equal and line["text"] is not None else 1 if equal else 2
    return order, -len(line["text"] or ""), repr((line["operator"], line["number"]))


def _rank(line: dict[str, Any]) -> tuple[int, int, str, str]:
    return *_selectivity(line), repr(sorted(line.items()))


def _access(lines: list[dict[str, Any]]) -> str:
    if not lines:
        return ALWAYS
    return (TEXT, NUMBER, PATH)[_selectivity(lines[0])[0]]
