"""What is advertised to one neighbour, in versions."""

import random

import pytest

from tamis.model.matching import Line
from tamis.network.advert import REMEMBERED, Advert
from tamis.network.interest import Row
from tamis.network.tables import EMPTY, EVERYTHING, changed_hash


def row(*lines: str) -> Row:
    """A row of plain lines; `x=1` has the path `x`."""
    return frozenset(Line(one, one.partition("=")[0]) for one in lines)


@pytest.mark.parametrize("seed", range(10))
def test_each_version_is_the_one_before_with_its_change(seed: int) -> None:
    draw = random.Random(seed)
    advert = Advert("m")
    pool = [row(*draw.sample(["a", "a=1", "a=2", "b", "b=1", "c=1"], draw.randint(1, 2))) for _ in range(20)]
    known: list[tuple[str, Row]] = []
    advertised = advert.rows()
    for _ in range(100):
        for _ in range(draw.randint(0, 4)):
            if known and draw.random() < 0.5:
                tenant, one = known.pop(draw.randrange(len(known)))
                advert.change("s", tenant, removed=[one])
            else:
                tenant, one = draw.choice("tu"), draw.choice(pool)
                known.append((tenant, one))
                advert.change("s", tenant, added=[one])
        before = advert.version
        added, removed = advert.commit({}, everything=False)
        assert removed <= advertised
        assert not added & advertised
        advertised = advertised - removed | added
        assert advertised == advert.rows()
        assert advert.version.hash == changed_hash(EMPTY, advertised, ())
        assert (advert.version == before) == (not added and not removed and before.count > 0)


def test_everything_is_a_version_too() -> None:
    advert = Advert("m")
    advert.change("s", "t", added=[row("a")])
    advert.commit({"x": (1, "k")}, everything=True)
    assert (advert.version.count, advert.version.hash) == (1, EVERYTHING)
    advert.commit({"x": (2, "k")}, everything=False)
    assert advert.version.count == 2
    assert advert.rows() == {("t", "a")}
    assert advert.included(1) == {"x": (1, "k")}
    assert advert.included(9) == {"x": (2, "k")}
    assert advert.included(0) == {}


def test_few_versions_are_remembered() -> None:
    advert = Advert("m")
    for number in range(REMEMBERED + 10):
        advert.change("s", "t", added=[row(f"a={number}")])
        advert.commit({"x": (number, "k")}, everything=False)
    assert len(advert._includes) == REMEMBERED
    assert advert.included(5) == {}
