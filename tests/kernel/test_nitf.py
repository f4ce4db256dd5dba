"""News documents and the paths that people wrote benchmarks with: many queries at once."""

import pyarrow as pa
import pytest
from lxml import etree

import tamis
from tests.helpers.engines import table

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def index(nitf_paths: list[str]) -> tamis.Index:
    index = tamis.Index()
    assert index.load(table(nitf_paths)).num_rows == 0
    return index


@pytest.fixture(scope="module")
def matched(index: tamis.Index, nitf_messages: list[bytes]) -> list[set[int]]:
    batch = index.match_batch(nitf_messages)
    assert batch["code"].null_count == len(nitf_messages)
    return [set(targets or ()) for targets in index.targets(batch).to_pylist()]


def test_every_path_is_a_query_of_its_own(index: tamis.Index, nitf_paths: list[str]) -> None:
    stats = index.stats()
    assert (stats.targets, stats.queries) == (len(nitf_paths), len(nitf_paths)) == (153_928, 153_928)


def test_the_numbers_of_matches_are_known(matched: list[set[int]]) -> None:
    counts = [len(targets) for targets in matched]
    assert (len(counts), max(counts)) == (500, 18_136)
    assert round(sum(counts) / len(counts)) == 5_161


def test_lxml_agrees_on_a_sample(
    matched: list[set[int]], nitf_messages: list[bytes], nitf_paths: list[str]
) -> None:
    places = range(0, len(nitf_paths), 307)
    queries = [(place, etree.XPath(f"boolean({nitf_paths[place]})")) for place in places]
    for number in range(0, len(nitf_messages), 25):
        tree = etree.ElementTree(etree.fromstring(nitf_messages[number]))
        expected = {place for place, holds in queries if holds(tree)}
        assert matched[number] & set(places) == expected


def test_matches_do_not_depend_on_the_size_of_batches(
    index: tamis.Index, matched: list[set[int]], nitf_messages: list[bytes]
) -> None:
    for number in range(0, 60, 3):
        three = nitf_messages[number : number + 3]
        assert set(index.match(three[0])) == matched[number]
        batch = index.match_batch(pa.array(three, pa.binary()))
        assert [set(targets or ()) for targets in index.targets(batch).to_pylist()] == matched[
            number : number + 3
        ]
