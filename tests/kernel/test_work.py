"""The work of matching: the prefilter must leave few candidates."""

from typing import Any

import pyarrow as pa
import pytest

import tamis


def candidates(queries: list[str], message: bytes) -> int:
    index = tamis.Index()
    index.load(pa.table({"target": range(len(queries)), "query": queries}))
    # Twice: the second time the index has seen what messages are like.
    index.match(message)
    index.merge()
    return int(index.match_batch([message])["candidates"].to_pylist()[0] or 0)


def test_an_equality_keeps_the_others_away() -> None:
    queries = [f"/quote[symbol = 'S{n}'][price > {n % 90}]" for n in range(10_000)]
    message = b"<quote><symbol>S42</symbol><price>50</price></quote>"
    assert candidates(queries, message) <= 2


def test_paths_that_are_not_there_cost_nothing() -> None:
    queries = [f"//a{n}[b]/c" for n in range(5_000)]
    assert candidates(queries, b"<r><a7><b/><c/></a7></r>") <= 2


def test_ranges_are_cut_at_their_thresholds() -> None:
    queries = [f"/quote/price > {n}" for n in range(10_000)]
    message = b"<quote><price>25.5</price></quote>"
    assert candidates(queries, message) <= 30


def test_the_rarer_of_two_conditions_is_the_access_test() -> None:
    queries = [f"/m[a = 'often'][b = 'v{n}']" for n in range(2_000)]
    assert candidates(queries, b"<m><a>often</a><b>v3</b></m>") <= 2


def test_only_negations_are_always_candidates() -> None:
    queries = [f"not(//n{n})" for n in range(100)] + [f"//n{n}" for n in range(1000)]
    assert candidates(queries, b"<m/>") <= 100


def test_other_tenants_are_not_looked_at() -> None:
    index = tamis.Index()
    tenants = [f"t{n % 50}" for n in range(5_000)]
    queries = [f"//b[@x = {n % 3}][c]" for n in range(5_000)]
    index.load(pa.table({"target": range(5_000), "query": queries, "tenant": tenants}))
    batch = index.match_batch([b"<a><b x='1'><c/></b></a>"], tenant="t7")
    assert int(batch["candidates"].to_pylist()[0] or 0) <= 100


def test_positions_in_any_namespace_are_looked_up() -> None:
    index = tamis.Index()
    names = ("*:a", "Q{urn:p}*", "*", "p:a", "Q{}a")
    queries = [f"/r/{name}[{place}]" for name in names for place in range(1, 101)]
    queries += [f"/r/{name}[@k][{place}]" for name in names for place in range(1, 101)]
    for target, query in enumerate(queries):
        index.insert(target, query, namespaces={"p": "urn:p"})
    message = b"<r xmlns:p='urn:p'><p:a k=''/><a k=''/><p:b/><p:a/></r>"
    found = index.match_batch([message])
    expected = [
        f"/r/{name}[{place}]"
        for name, most in zip(names, (3, 3, 4, 2, 1), strict=True)
        for place in range(1, most + 1)
    ]
    expected += ["/r/*:a[@k][1]", "/r/*:a[@k][2]", "/r/Q{urn:p}*[@k][1]", "/r/*[@k][1]", "/r/*[@k][2]"]
    expected += ["/r/p:a[@k][1]", "/r/Q{}a[@k][1]"]
    targets: Any = index.targets(found).to_pylist()[0]
    assert [queries[target] for target in targets] == expected
    assert found.column("verified").to_pylist() == [0]


@pytest.mark.parametrize("name", ["a", "*:a", "*", "Q{}*"])
def test_many_positions_after_a_condition_are_ranges(name: str) -> None:
    index = tamis.Index()
    for place in range(1, 401):
        index.insert(place, f"/r/{name}[@k][{place}]")
    assert index.match(b"<r>" + b"<a k=''/><a/>" * 300 + b"</r>") == list(range(1, 301))
