"""`tamis explain --engine relational`: how joins decide a query, by the rows that the tables have of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tamis.relational.alternative import Decomposed, decomposed

_ACCESS = {
    "text": "a text at its path",
    "number": "a number at its path",
    "path": "its path alone",
}


def explain_joins(query: str, namespaces: Mapping[str, str] | None) -> Iterator[str]:
    """The lines of the explanation of a query that was accepted."""
    (one,) = decomposed([query], namespaces)
    assert isinstance(one, Decomposed)
    for row in one.rows:
        yield f"alternative {row['alternative']}:"
        for place, line in enumerate(row["lines"]):
            looked_up = f"  looked up by {_ACCESS[row['access']]}" if place == 0 else ""
            yield f"  {_line(line, one)}{_places(line['places'])}{looked_up}"
        for line in row["negative"]:
            yield f"  not {_line(line, one)}"
        if not row["lines"]:
            yield "  nothing is necessary: a candidate for every message"
        for number, anchor in enumerate(row["anchors"]):
            above = "the document" if anchor["parent"] < 0 else f"anchor {anchor['parent']}"
            needs = anchor["needs"]
            yield f"  anchor {number}: {needs} lines and anchors agree on its element; below {above}"
        reason = row["reason"]
        yield "  decided by joins" if reason is None else f"  verified by the kernel: {reason}"
    if not one.rows:
        yield "no message satisfies it"


def _line(line: Mapping[str, Any], query: Decomposed) -> str:
    text, _, _ = query.paths[line["path"]]
    constant = line["number"] if line["text"] is None else f"'{line['text']}'"
    if line["length"] is not None:
        constant = f"{constant}… of {line['length']} bytes"
    subject = line["subject"] + " " if line["subject"].endswith("position") else ""
    return (
        f"{subject}{text}"
        if line["operator"] == "exists"
        else f"{subject}{text} {line['operator']} {constant}"
    )


def _places(places: Sequence[int]) -> str:
    steps = ", ".join(str(place + 1) for place in places)
    return f"  anchors at step {steps}" if places else ""
