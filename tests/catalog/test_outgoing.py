"""The queue of webhook deliveries in each database: leases, attempts, dead letters."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tamis.catalog import Catalog
from tamis.catalog.outgoing import Attempt, Outbound
from tamis.errors import CatalogError
from tamis.model.signatures import new_secret
from tamis.model.webhook import NewWebhook, WebhookState
from tests.helpers.delivery_rows import TIME, delivery

HOOK = ("", "hook")
HOUR = timedelta(hours=1)


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        catalog.webhooks.create(NewWebhook("hook", "https://example.org/", new_secret()))
        yield catalog


def now() -> datetime:
    return datetime.now(UTC)


def row(number: int, webhook: str = "hook", **more: Any) -> dict[str, Any]:
    return delivery(number) | {"delivery_target": f"webhook:{webhook}"} | more


def claim(catalog: Catalog, at: datetime | None = None, limit: int = 100) -> list[Outbound]:
    at = at or now()
    return sorted(catalog.outgoing.claim(HOOK, at, at + HOUR, limit), key=lambda one: one.id)


def letters(catalog: Catalog) -> dict[str, tuple[str, bytes]]:
    """All failed deliveries moved to the dead letters: codes and payloads by delivery."""
    found = {}
    while batches := catalog.dead_deliveries.claim_batches():
        for batch in batches:
            for letter in catalog.dead_deliveries.letters(batch):
                found[letter["delivery"]] = (letter["code"], letter["raw"])
            catalog.dead_deliveries.finish(batch)
    return found


def test_each_delivery_goes_where_its_target_says_once(catalog: Catalog) -> None:
    rows = [row(1, payload=b"<x/>"), row(2), delivery(3)]
    assert catalog.mailbox.store("a-0.json", rows) == 3
    assert catalog.mailbox.store("a-0.json", rows) == 0
    assert catalog.mailbox.store("b-0.json", [*rows, row(4), delivery(5)]) == 2
    assert [one.id for one in catalog.mailbox.pending("", "bob")] == ["d3", "d5"]
    assert (catalog.outgoing.count(), catalog.outgoing.counts("")) == (3, {"hook": 3})
    assert (catalog.outgoing.count("t"), catalog.outgoing.count("", "other")) == (0, 0)
    first = claim(catalog)[0]
    assert (first.id, first.payload, first.tries, first.received) == ("d1", b"<x/>", 0, TIME)


def test_a_claimed_delivery_is_leased(catalog: Catalog, catalog_url: str) -> None:
    catalog.mailbox.store("a-0.json", [row(n) for n in range(40)])
    seen: list[list[str]] = []

    def take() -> None:
        with Catalog(catalog_url) as own:
            while some := claim(own, limit=3):
                seen.append([one.id for one in some])

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [id for some in seen for id in some]
    assert sorted(taken) == sorted(f"d{n}" for n in range(40))
    assert claim(catalog) == []
    catalog.outgoing.release(["d7"])
    assert [one.id for one in claim(catalog)] == ["d7"]
    # Their sender died: the lease has ended.
    assert len(claim(catalog, now() + 2 * HOUR)) == 40


def test_tries_are_noted_once(catalog: Catalog) -> None:
    catalog.mailbox.store("a-0.json", [row(n) for n in range(3)])
    good, bad, last = claim(catalog)
    tries = [
        Attempt(good, now()),
        Attempt(bad, now(), "answered with 500", next=now()),
        Attempt(last, now(), "answered with 503", held_until=now() + HOUR),
    ]
    for _ in range(2):
        catalog.outgoing.record(tries)
    assert [(one.id, one.tries) for one in claim(catalog)] == [("d1", 1)]
    webhook = catalog.webhooks.get(*HOOK)
    assert webhook.succeeded is not None
    assert webhook.held_until is not None
    assert webhook.failing
    assert webhook.failure == "answered with 503"
    assert letters(catalog) == {"d2": ("webhook-failed", b"<a/>")}
    # Sent deliveries are remembered for a while.
    assert catalog.mailbox.store("b-0.json", [row(n) for n in range(3)]) == 0
    assert catalog.outgoing.forget(now() - HOUR) == 0
    assert catalog.outgoing.forget(now() + HOUR) == 1
    assert catalog.mailbox.store("c-0.json", [row(n) for n in range(3)]) == 1


def test_a_disabled_webhook_gives_up_its_queue(catalog: Catalog) -> None:
    catalog.mailbox.store("a-0.json", [row(n) for n in range(4)])
    first, second, third = claim(catalog, limit=3)
    catalog.outgoing.record([Attempt(first, now(), "answered with 410", gone=True)])
    assert catalog.webhooks.get(*HOOK).state is WebhookState.DISABLED
    # Their requests were running: one succeeded, one failed.
    catalog.outgoing.record([Attempt(second, now()), Attempt(third, now(), "answered with 500", next=now())])
    catalog.mailbox.store("b-0.json", [row(4)])
    assert catalog.outgoing.waiting() == []
    found = letters(catalog)
    assert {id: code for id, (code, _) in found.items()} == {
        first.id: "webhook-gone",
        third.id: "webhook-gone",
        "d3": "webhook-gone",
        "d4": "webhook-disabled",
    }
    assert catalog.dead_deliveries.resend([("d3", b"<a/>")]) == {
        "d3": "webhook:hook is disabled; create or enable it first"
    }
    assert catalog.webhooks.change(*HOOK, state=WebhookState.ACTIVE).reason is None
    assert catalog.dead_deliveries.resend([("d3", b"<again/>"), (second.id, b""), ("none", b"")]) == {
        second.id: "it was delivered",
        "none": "the catalog does not have this delivery",
    }
    [again] = claim(catalog)
    assert (again.id, again.payload, again.tries) == ("d3", b"<again/>", 0)
    assert catalog.dead_deliveries.resend([("d3", b"")]) == {"d3": "it is queued for webhook:hook"}


def test_an_interrupted_batch_of_dead_letters_is_the_same_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.catalog.dead_deliveries.CHUNK", 2)
    catalog.mailbox.store("a-0.json", [row(n) for n in range(3)])
    catalog.webhooks.change(*HOOK, state=WebhookState.DISABLED)
    [batch] = catalog.dead_deliveries.claim_batches()
    before = catalog.dead_deliveries.letters(batch)
    assert len(before) == 2
    assert before[0].items() >= {"offset": "webhook:hook", "subscription": "s0", "id": "m0"}.items()
    [same, other] = sorted(catalog.dead_deliveries.claim_batches(), key=lambda one: one != batch)
    assert catalog.dead_deliveries.letters(same) == before
    catalog.dead_deliveries.finish(same)
    catalog.dead_deliveries.finish(same)
    assert catalog.dead_deliveries.letters(same) == []
    assert len(catalog.dead_deliveries.letters(other)) == 1
    assert set(letters(catalog)) == {"d2"}
    assert catalog.dead_deliveries.claim_batches() == []


def test_queued_deliveries_of_a_removed_webhook_are_dead(catalog: Catalog) -> None:
    catalog.mailbox.store("a-0.json", [row(1), row(2, "never")])
    catalog.webhooks.remove(*HOOK)
    assert {code for code, _ in letters(catalog).values()} == {"webhook-removed"}
    with pytest.raises(CatalogError, match="unknown-webhook"):
        catalog.webhooks.get(*HOOK)
    assert catalog.dead_deliveries.resend([("d1", b"")]) == {
        "d1": "webhook:hook is removed; create or enable it first"
    }
    catalog.webhooks.create(NewWebhook("hook", "https://example.org/2", new_secret()))
    assert catalog.dead_deliveries.resend([("d1", b"<a/>")]) == {}
    assert len(claim(catalog)) == 1


def test_a_secret_before_is_good_until_its_time(catalog: Catalog) -> None:
    first, second = catalog.webhooks.get(*HOOK).secret, new_secret()
    until = now() + HOUR
    rotated = catalog.webhooks.rotate(*HOOK, second, until)
    assert rotated.secrets(now()) == (second, first)
    assert rotated.secrets(until) == (second,)
    third = catalog.webhooks.rotate(*HOOK, new_secret(), until)
    assert third.previous == second
