"""`Index.match_pairs`: given pairs of a message and a target, verified one by one."""

from random import Random
from typing import Any

import pytest

import tamis
from tests.helpers import random_documents as documents
from tests.helpers.engines import answer, table
from tests.kernel.test_random import Group


def test_pairs_match_exactly_where_the_index_says_so() -> None:
    random = Random(23)
    group = Group(random)
    queries = [query.text for query in group.queries]
    index = tamis.Index()
    index.load(table(queries), namespaces=documents.NAMESPACES)
    ids = [tamis.check(query, documents.NAMESPACES).id for query in queries]
    pairs = [random.sample(range(len(queries)), 100) for _ in group.messages]
    verified = index.match_pairs(group.messages, pairs)
    assert verified["code"].null_count == len(group.messages)
    lists: Any = index.targets(verified)
    found = [set(targets) for targets in lists.to_pylist()]
    for targets, asked, matching in zip(found, pairs, answer(index, group.messages), strict=True):
        asked_ids = {ids[target] for target in asked}
        assert targets == {target for target in matching if ids[target] in asked_ids}
    counts: Any = verified["verified"]
    assert sum(counts.to_pylist()) == sum(len({ids[one] for one in row}) for row in pairs)


def test_pairs_of_several_segments_and_removed_targets() -> None:
    index = tamis.Index()
    index.load(table(["//a", "//b"]))
    index.load(table(["//a[b]", "//c"], first=2))
    index.remove(1)
    (row,) = index.targets(index.match_pairs([b"<a><b/></a>"], [[0, 1, 2, 3, 99]])).to_pylist()
    assert row == [0, 2]


def test_a_target_of_another_tenant_matches_nothing() -> None:
    index = tamis.Index()
    index.insert(1, "//a", tenant="one")
    index.insert(2, "//a", tenant="two")
    verified = index.match_pairs([b"<a/>"], [[1, 2]], tenant="two")
    assert index.targets(verified).to_pylist() == [[2]]


def test_errors_are_rows_and_failed_queries_are_named() -> None:
    index = tamis.Index()
    index.insert(1, "//a[count(.//b) > count(.//c)]")
    rows = index.match_pairs([b"<a>", None, b"<a><b/></a>"], [[1], [1], [1]])
    assert rows["code"].to_pylist() == ["unclosed-element", "no-message", None]
    message = b"<a>" + b"<b/>" * 1000 + b"</a>"
    limited = index.match_pairs([message], [[1]], limits=tamis.Limits(work=10))
    assert index.targets(limited).to_pylist() == [[]]
    assert index.failed_targets(limited).to_pylist() == [[1]]


def test_there_is_a_list_for_each_message() -> None:
    with pytest.raises(ValueError, match="2 lists of targets for 1 messages"):
        tamis.Index().match_pairs([b"<a/>"], [[1], [2]])
