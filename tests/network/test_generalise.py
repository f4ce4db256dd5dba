"""Wider rows in place of too many: always implied, within the budget, and few messages more."""

import os
import random
import time

import pytest

import tamis
from tamis.network.advert import Advert
from tamis.network.generalise import wider_forms
from tamis.network.interest import Row, rows_of, text_of, weaker_forms
from tests.helpers import random_documents as documents
from tests.helpers.engines import answer, loaded
from tests.kernel.test_random import Group
from tests.network.test_interest import fits

PAIRS = int(os.environ.get("TAMIS_GENERAL_PAIRS") or 40_000)
"""Random pairs of a query and a message; `make soak` takes 1,000,000."""


def row(text: str) -> Row:
    (found,) = rows_of(text)
    return found


def texts(rows: set[Row]) -> set[str]:
    return {text_of(one) for one in rows}


def test_a_query_implies_its_rows_and_these_their_wider_forms() -> None:
    seed = int(os.environ.get("TAMIS_SEED") or time.time_ns() % 1_000_000_007)
    draw = random.Random(seed)
    pairs = wider = narrowed = 0
    while pairs < PAIRS:
        group = Group(draw)
        given = [query.text for query in group.queries if fits(query.text)]
        matched = answer(loaded(given, documents.NAMESPACES), group.messages)
        # For each query and one wider form of each of its rows.
        general = [
            [draw.choice(sorted(wider_forms(one) | {one}, key=text_of)) for one in sorted(some, key=text_of)]
            for some in (rows_of(text, documents.NAMESPACES) for text in given)
        ]
        passed = answer(
            loaded([" or ".join(map(text_of, some)) or "false()" for some in general], {}), group.messages
        )
        for exact, wide in zip(matched, passed, strict=True):
            wrong = [(given[place], texts(set(general[place]))) for place in exact - wide]
            assert not wrong, f"seed {seed}: {wrong}"
            wider += len(wide - exact)
            narrowed += len(given) - len(wide)
        pairs += len(given) * len(group.messages)
    assert wider > pairs // 100
    assert narrowed > pairs // 20


def test_wider_forms() -> None:
    shop = row("/shop/item/@id=47")
    assert texts(wider_forms(shop) - weaker_forms(shop)) == {
        "//item/@id=47",
        "/*/item/@id=47",
        "/shop",
        "/shop/item",
        "/shop/item/@id<50 and /shop/item/@id>=40",
    }
    assert texts(wider_forms(row("//a='x'"))) == {"//a", "true()"}
    assert texts(wider_forms(row("$envelope/source='x'"))) == {"$envelope/source", "true()"}
    assert "//Q{urn:a/b}k/text()='x'" in texts(wider_forms(row("/Q{urn:a/b}k/text()='x'")))
    both = row("//a/b and //c=1")
    assert {"//a", "//b", "//c<10 and //c>=0", "//c", "//a/b and //c"} <= texts(wider_forms(both))


def advertised(advert: Advert) -> set[str]:
    return {text for _, text in advert.rows()}


def test_the_rows_that_let_few_more_messages_cross_are_chosen() -> None:
    wanted = [f"/shop/{kind}/price={price}" for kind in ("book", "disc") for price in (41, 43, 46)]
    wanted += ["//news[topic='a']", "//news[topic='b']"]
    news = [("", f"<news><topic>{number}</topic></news>".encode()) for number in range(20)]
    advert = Advert("m", 5)
    advert.change("s", "", added=[row(text) for text in wanted])
    advert.generalise(lambda: news)
    # News are many and prices few: only prices become wider.
    kept = {text_of(row(text)) for text in wanted[-2:]}
    assert kept < advertised(advert)
    assert len(advertised(advert)) <= 5
    # What then arrives in vain is in a later sample.
    shops = [("", f"<shop><book><price>{4 * number}</price></book></shop>".encode()) for number in range(90)]
    shops += [("", b"<shop><disc><price>49</price></disc></shop>")] * 30
    advert.generalise(lambda: shops, anew=True)
    assert "//news/topic" in advertised(advert)
    assert "true()" not in advertised(advert)
    assert len(advertised(advert)) <= 5
    # With fewer rows, all of them fit.
    advert.change("s", "", removed=[row(text) for text in wanted[2:]])
    advert.generalise(lambda: shops)
    assert advertised(advert) == {text_of(row(text)) for text in wanted[:2]}


@pytest.mark.parametrize("seed", range(6))
def test_all_rows_are_covered_within_the_budget_after_any_changes(seed: int) -> None:
    draw = random.Random(seed)
    budget = draw.choice([2, 4, 8])
    advert = Advert("m", budget)
    names = ["a", "b", "c"]

    def path() -> str:
        steps = "".join(draw.choice(["/", "//"]) + draw.choice(names) for _ in range(draw.randint(1, 3)))
        return steps + draw.choice(["", "=1", "=42", "='x'"])

    def message() -> bytes:
        one, two, three = (draw.choice(names) for _ in range(3))
        text = draw.choice(["", "1", "42", "x"])
        return f"<{one}><{two}>{text}</{two}><{three}><a>{text}</a></{three}></{one}>".encode()

    known: list[tuple[str, Row]] = []
    advertised = advert.rows()
    for _ in range(25):
        for _ in range(draw.randint(1, 6)):
            if known and draw.random() < 0.4:
                tenant, one = known.pop(draw.randrange(len(known)))
                advert.change("s", tenant, removed=[one])
            else:
                tenant, one = (
                    draw.choice("tu"),
                    row(f"{path()} and {path()}" if draw.random() < 0.5 else path()),
                )
                known.append((tenant, one))
                advert.change("s", tenant, added=[one])
        sample = [(draw.choice("tu"), message()) for _ in range(draw.choice([0, 10]))]
        advert.generalise(lambda: sample, anew=draw.random() < 0.2)  # noqa: B023
        added, removed = advert.commit({}, everything=False)
        advertised = advertised - removed | added
        assert advertised == advert.rows()
        assert len(advertised) <= budget
        for tenant in "tu":
            wide, exact = tamis.Index(), tamis.Index()
            for number, (_, text) in enumerate(one for one in advertised if one[0] == tenant):
                wide.insert(number, text)
            for number, (_, one) in enumerate(some for some in known if some[0] == tenant):
                exact.insert(number, text_of(one))
            for content in (message() for _ in range(10)):
                assert wide.match(content) or not exact.match(content)
