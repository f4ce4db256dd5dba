"""The tables of the service in each database: tokens, accepted messages, mailboxes."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tamis.catalog import Catalog
from tamis.errors import CatalogError
from tamis.model.token import NewToken, Role
from tests.helpers.delivery_rows import TIME, deliveries, delivery


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def test_a_token_is_found_by_its_secret_until_it_is_revoked(catalog: Catalog) -> None:
    asked = NewToken("feed", Role.SUBSCRIBER, "t", "ann", rate=5, body=100)
    token, secret = catalog.tokens.create(asked)
    assert catalog.tokens.find(secret) == token
    assert (token.name, token.role, token.tenant, token.subscriber) == ("feed", Role.SUBSCRIBER, "t", "ann")
    assert (token.rate, token.body, token.revoked) == (5, 100, None)
    assert catalog.tokens.find(secret + "x") is None
    assert catalog.tokens.revoke(token.id).revoked is not None
    assert catalog.tokens.find(secret) is None
    assert [one.id for one in catalog.tokens.list()] == [token.id]
    with pytest.raises(CatalogError, match="unknown-token"):
        catalog.tokens.revoke("nobody")


@pytest.mark.parametrize(
    "asked",
    [
        NewToken("x", Role.SUBSCRIBER),
        NewToken("x", Role.ADMIN, subscriber="ann"),
        NewToken("", Role.ADMIN),
        NewToken("x", Role.ADMIN, rate=0),
    ],
)
def test_tokens_that_cannot_be(catalog: Catalog, asked: NewToken) -> None:
    with pytest.raises(CatalogError, match="bad-value"):
        catalog.tokens.create(asked)


def test_accepted_messages_are_known_and_so_are_files_that_enter(catalog: Catalog) -> None:
    accepted = catalog.accepted
    accepted.accept([("inbox", "m1"), ("inbox", "m2"), ("other", "m1")], ["f1", "f2"], [])
    assert accepted.known("inbox", ["m1", "m2", "m3"]) == {"m1", "m2"}
    assert accepted.known("other", ["m1", "m2"]) == {"m1"}
    assert accepted.entering() == {"f1", "f2"}
    accepted.accept([("inbox", "m3")], ["f3"], ["f1", "f2"])
    assert accepted.entering() == {"f3"}


def test_no_version_is_used_up(catalog: Catalog) -> None:
    before = catalog.version
    catalog.tokens.create(NewToken("x", Role.ADMIN))
    catalog.accepted.accept([("inbox", "m1")], ["f1"], [])
    catalog.mailbox.store("a-0.json", deliveries(range(3)))
    assert catalog.version == before


def test_a_mailbox_has_each_delivery_once_and_in_order(catalog: Catalog) -> None:
    mailbox = catalog.mailbox
    assert mailbox.store("a-0.json", [delivery(1), delivery(2, "eve"), delivery(3), delivery(1)]) == 3
    assert mailbox.store("a-0.json", [delivery(4)]) == 0
    assert mailbox.store("b-0.json", [delivery(3), delivery(5, payload=b"\xff\0")]) == 1
    assert mailbox.imported_manifests() == {"a-0.json", "b-0.json"}
    found = mailbox.pending("", "bob")
    assert [one.id for one in found] == ["d1", "d3", "d5"]
    assert found[-1].payload == b"\xff\0"
    assert (found[0].received, found[0].encoding) == (TIME, None)
    assert [one.id for one in mailbox.pending("", "bob", after=found[0].number, limit=1)] == ["d3"]
    assert mailbox.pending("t", "bob") == []


def test_acknowledged_deliveries_are_not_pending(catalog: Catalog) -> None:
    mailbox = catalog.mailbox
    mailbox.store("a-0.json", [delivery(n) for n in range(5)] + [delivery(9, "eve")])
    first, second, *_ = mailbox.pending("", "bob")
    assert mailbox.acknowledge("", "bob", ids=["d3", "d9", "none"]) == 1
    assert mailbox.acknowledge("", "bob", until=second.number) == 2
    assert mailbox.acknowledge("", "bob", ids=[first.id]) == 0
    assert [one.id for one in mailbox.pending("", "bob")] == ["d2", "d4"]
    assert (mailbox.count(""), mailbox.count("", "bob"), mailbox.count("t")) == (3, 2, 0)
    # Acknowledged ones are still known for a while, then forgotten.
    assert mailbox.store("b-0.json", [delivery(3)]) == 0
    assert mailbox.forget(datetime.now(UTC) - timedelta(days=1)) == 0
    assert mailbox.forget(datetime.now(UTC) + timedelta(days=1)) == 3
    assert mailbox.store("c-0.json", [delivery(3)]) == 1


def test_large_payloads_come_a_few_at_a_time(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.catalog.mailbox.CHUNK_BYTES", 100)
    catalog.mailbox.store("a-0.json", [delivery(n, payload=b"x" * (60 if n < 4 else 500)) for n in range(6)])
    seen: list[list[str]] = []
    after = 0
    while found := catalog.mailbox.pending("", "bob", after=after):
        seen.append([one.id for one in found])
        after = found[-1].number
    assert seen == [["d0", "d1"], ["d2", "d3"], ["d4"], ["d5"]]


def test_two_that_fill_mailboxes_at_once_wait_for_each_other(catalog_url: str) -> None:
    """Numbers become visible in order, and each delivery is stored once."""

    def fill(first: int) -> None:
        with Catalog(catalog_url) as catalog:
            for batch in range(first, first + 10):
                rows = [delivery(batch * 10 + n) for n in range(10)]
                catalog.mailbox.store(f"a-{batch}.json", rows)

    with Catalog(catalog_url) as catalog:
        threads = [threading.Thread(target=fill, args=(first,)) for first in (0, 5)]
        for thread in threads:
            thread.start()
        seen: list[str] = []
        after = 0
        while any(thread.is_alive() for thread in threads) or len(seen) < 150:
            for one in catalog.mailbox.pending("", "bob", after=after, limit=1000):
                seen.append(one.id)
                after = one.number
        for thread in threads:
            thread.join()
    assert sorted(seen) == sorted(f"d{n}" for n in range(150))
