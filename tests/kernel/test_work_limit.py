"""A query that takes more steps on a message than it may fails alone, with `work-limit` and both numbers."""

import pytest

import tamis

LIMITS = tamis.Limits(work=1_000)

MESSAGE = b"<r>" + b"<e x='1'><f>one</f><f>two</f></e>" * 1_000 + b"</r>"

HARD = "[contains(., 'a0') or contains(., 'a1') or contains(., 'two')]"

QUERIES = {
    1: "//e",
    2: f"//*{HARD}[contains(., 'a3')]",
    3: f"for $v in //e{HARD}[contains(., 'a3') or contains(., 'one')] return <o>{{ count($v/f) }}</o>",
    4: "for $v in /r return <o>{ count($v/e) }</o>",
    5: f"for $v in /r return <o>{{ $v/e{HARD}[contains(., 'a3')] }}</o>",
}


@pytest.fixture(scope="module")
def index() -> tamis.Index:
    made = tamis.Index()
    for target, query in QUERIES.items():
        made.insert(target, query)
    return made


def test_matching_reports_it_beside_the_others(index: tamis.Index) -> None:
    found = index.match_batch([MESSAGE, b"<r><e/></r>"], limits=LIMITS)
    assert index.targets(found).to_pylist() == [[1, 3, 4, 5], [1, 4, 5]]
    assert index.failed_targets(found).to_pylist() == [[2], []]
    assert found.column("code").to_pylist() == [None, None]
    with pytest.raises(tamis.MatchError, match=r"work-limit: .* 1000 steps: 2") as caught:
        index.match(MESSAGE, limits=LIMITS)
    assert (caught.value.targets, caught.value.failed) == ([1, 3, 4, 5], [2])
    assert index.match(MESSAGE) == [1, 3, 4, 5]


@pytest.mark.parametrize(
    "hard",
    [
        "count(//e/following::f) > 1",
        "//f[position() = last()][count(preceding::*) = 9]",
        "sum(//e/@x) = 2",
        "//e[count(ancestor::*) = 7]",
        "string-length(translate(., 'o', 'p')) = 7",
        "string-length(normalize-space(.)) = 7",
        "//e[lang('de')]/..",
        "//f = //g/@x or //f/.. < //f",
        "string-length(concat(" + ", ".join(["/r/e"] * 200) + ")) = 7",
    ],
)
def test_computed_values_count_too(hard: str) -> None:
    index = tamis.Index()
    index.insert(1, hard)
    index.insert(2, "count(/r/@z) = 0")
    found = index.match_batch([MESSAGE], limits=LIMITS)
    assert index.failed_targets(found).to_pylist() == [[1]]
    assert index.targets(found).to_pylist() == [[2]]
    assert index.failed_targets(index.match_batch([MESSAGE])).to_pylist() == [[]]


def test_a_text_that_a_function_makes_is_limited() -> None:
    """Otherwise a query of some kilobytes could fill the memory."""
    index = tamis.Index()
    index.insert(1, "string-length(concat(" + ", ".join(["."] * 1000) + ")) = 1")
    message = b"<a>" + b"x" * 1_000_000 + b"</a>"
    found = index.match_batch([message])
    assert index.failed_targets(found).to_pylist() == [[1]]


def test_transforming_reports_it_beside_the_others(index: tamis.Index) -> None:
    outputs = {output.target: output for output in index.transform(MESSAGE, limits=LIMITS)}
    assert {target: output.code for target, output in outputs.items()} == {
        1: None,
        2: "work-limit",
        3: "work-limit",
        4: None,
        5: "work-limit",
    }
    assert outputs[1].payload is MESSAGE
    assert outputs[4].payload == b"<o>1000</o>"
    assert "1000 allowed" in str(outputs[2].reason)
    made = index.transform_batch([MESSAGE], limits=LIMITS).made
    failed = made.filter(made.column("code").is_valid()).select(["value", "limit"]).to_pylist()
    assert failed == [{"value": 1_001, "limit": 1_000}] * 3
    assert [output.code for output in index.transform(MESSAGE)] == [None] * 4


def test_selecting_and_explaining_report_it(index: tamis.Index) -> None:
    found = index.match_elements([MESSAGE], limits=LIMITS)
    assert found.errors.column("code").to_pylist() == ["work-limit"] * found.errors.num_rows
    assert found.errors.num_rows >= 2
    with pytest.raises(tamis.ReadError, match="work-limit"):
        index.explain(MESSAGE, QUERIES[2], limits=LIMITS)
