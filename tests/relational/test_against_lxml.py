"""What the tables say, evaluated row by row in Python: the joins' meaning against lxml, without a Spark."""

import os
import time
from collections import defaultdict
from random import Random
from typing import Any

import tamis
from tamis.relational.alternative import Decomposed, decomposed
from tamis.relational.path_match import PathMatcher
from tests.helpers import random_documents as documents
from tests.kernel.test_random import Group

SEED = int(os.environ.get("TAMIS_SEED") or time.time_ns() % 1_000_000_007)
GROUPS = int(os.environ.get("TAMIS_PAIRS") or 20_000) // (240 * 24)

Row = dict[str, Any]


class Values:
    """The value table of a message, by tag path, and the matches of its tag paths by linear path."""

    def __init__(self, message: bytes, matcher: PathMatcher) -> None:
        self.by_path: dict[int, list[Row]] = defaultdict(list)
        texts = {}
        for row in tamis.read_values([message]).rows.to_pylist():
            self.by_path[row["path_hash"]].append(row)
            texts[row["path_hash"]] = row["path"]
        self.matches: dict[int, list[Row]] = defaultdict(list)
        for match in matcher.match(texts).to_pylist():
            self.matches[match["path"]].append(match)

    def tuples(self, line: Row) -> set[tuple[int, ...]]:
        """The nodes of the anchors of a line, for each of its hits."""
        found = set()
        for match in self.matches[line["path"]]:
            assert match["is_bounded"]
            for value in self.by_path[match["tag_path"]]:
                if passes(line, value):
                    for binding in match["bindings"]:
                        found.add(tuple(value["elements"][binding[at] - 1] for at in line["places"]))
        return found

    def holds(self, row: Row) -> bool:
        """Whether the lines of an alternative agree."""
        if any(self.tuples(line) for line in row["negative"]):
            return False
        children: dict[int, list[set[tuple[int, ...]]]] = defaultdict(list)
        for line in row["lines"]:
            children[line["anchor"]].append(self.tuples(line))
        anchors = sorted(enumerate(row["anchors"]), key=lambda one: -one[1]["level"])
        for number, anchor in anchors:
            assert len(children[number]) == anchor["needs"]
            whole = set.intersection(*children[number])
            children[anchor["parent"]].append({nodes[:-1] for nodes in whole})
        assert len(children[-1]) == row["needs"]
        return all(children[-1])


def passes(line: Row, value: Row) -> bool:
    """The test of a line, as `tamis.spark.relational.hits` says it in SQL."""
    number = {
        "position": value["position"], "element position": value["element_position"]
    }.get(line["subject"], value["number"])  # fmt: skip
    same = all(value[name] == line[name] for name in ("text", "length", "hash"))
    constant = line["number"]
    match line["operator"]:
        case "exists":
            return True
        case "=":
            return same if line["text"] is not None else number == constant
        case "!=":
            return not same if line["text"] is not None else number != constant
        case "<":
            return number is not None and number < constant
        case "<=":
            return number is not None and number <= constant
        case ">":
            return number is not None and number > constant
        case _:
            return number is not None and number >= constant


def test_rows_hold_where_lxml_says_so() -> None:
    """Rows without a reason are the query; the others are necessary for it."""
    random = Random(SEED)
    exact = pairs = 0
    for _ in range(GROUPS):
        group = Group(random)
        found = list(decomposed([query.text for query in group.queries], documents.NAMESPACES))
        rows = {one.query: one.rows for one in found if isinstance(one, Decomposed)}
        paths = {
            hash_: path for one in found if isinstance(one, Decomposed) for hash_, path in one.paths.items()
        }
        matcher = PathMatcher(paths)
        for message, matching in zip(group.messages, group.oracle(), strict=True):
            values = Values(message, matcher)
            for place, query in enumerate(group.queries):
                holding = [row for row in rows[place] if values.holds(row)]
                sure = any(row["reason"] is None for row in holding)
                wrong = not holding if place in matching else sure
                assert not wrong, f"seed {SEED}: {query.text} on {message!r}: {holding}"
                pairs += 1
                exact += all(row["reason"] is None for row in rows[place])
    assert exact > pairs / 3
