"""Retention: what the service deletes, and what it must keep."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.service.background.cleanup import Cleanup
from tamis.service.background.outbox_follower import OutboxFollower
from tamis.settings import SettingsError
from tamis.sinks.outbox import Outbox
from tests.helpers.delivery_rows import delivery
from tests.helpers.served import Served, serving, settings_in
from tests.service.test_service_deliveries import publish

DAY = timedelta(days=1)


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as catalog:
        yield catalog


def follower_of(folder: Path, catalog: Catalog) -> OutboxFollower:
    return OutboxFollower(Outbox(folder / "outbox"), catalog.mailbox, frozenset())


def parts(folder: Path) -> set[str]:
    """The batches that have files in the outbox."""
    return {path.name for path in (folder / "outbox" / "data").glob("*/*")}


def test_ids_are_forgotten_after_the_promised_time(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.catalog.accepted.DELETED", 3)
    accepted = catalog.accepted
    accepted.accept([("inbox", f"m{n}") for n in range(10)], ["f1"], [])
    assert accepted.forget(datetime.now(UTC) - DAY) == 0
    assert len(accepted.known("inbox", [f"m{n}" for n in range(10)])) == 10
    assert accepted.forget(datetime.now(UTC) + DAY) == 10
    assert accepted.known("inbox", [f"m{n}" for n in range(10)]) == set()
    # Independent of the files that wait for their rename.
    assert accepted.entering() == {"f1"}


def test_publications_go_when_they_are_old_and_in_mailboxes(catalog: Catalog, tmp_path: Path) -> None:
    for number in range(3):
        publish(tmp_path, number, [delivery(number)])
    follower = follower_of(tmp_path, catalog)
    assert follower.poll() == {("", "bob")}
    publish(tmp_path, 3, [delivery(3)])
    publish(tmp_path, 4, [delivery(4)])
    assert follower.delete_older(datetime.now(UTC) - DAY) == 0
    assert follower.delete_older(datetime.now(UTC) + DAY) == 3
    # Kept: one that is not imported, and the last one, whose batch may be run again.
    assert Outbox(tmp_path / "outbox").manifests() == ["c-3.json", "c-4.json"]
    assert parts(tmp_path) == {"c-3", "c-4"}
    assert catalog.mailbox.imported_manifests() == set()
    follower.poll()
    assert follower.delete_older(datetime.now(UTC) + DAY) == 1
    assert catalog.mailbox.imported_manifests() == {"c-4.json"}
    # Nothing is lost or repeated, also for a new follower.
    follower_of(tmp_path, catalog).poll()
    assert [one.id for one in catalog.mailbox.pending("", "bob")] == [f"d{n}" for n in range(5)]
    publish(tmp_path, 5, [delivery(5)])
    follower.poll()
    assert len(catalog.mailbox.pending("", "bob")) == 6


def test_publications_that_somebody_else_removed_are_forgotten(catalog: Catalog, tmp_path: Path) -> None:
    for number in range(2):
        publish(tmp_path, number, [delivery(number)])
    follower = follower_of(tmp_path, catalog)
    follower.poll()
    Outbox(tmp_path / "outbox").remove("c-0.json")
    assert follower.delete_older(datetime.now(UTC) - DAY) == 0
    assert catalog.mailbox.imported_manifests() == {"c-1.json"}


def test_the_last_publication_of_every_checkpoint_stays(catalog: Catalog, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    for number in (9, 10, 11):
        publish(tmp_path, number, [delivery(number)])
    assert outbox.older_than(datetime.now(UTC) + DAY) == ["c-9.json", "c-10.json"]
    outbox.remove("c-9.json")
    outbox.remove("c-9.json")
    assert outbox.manifests() == ["c-10.json", "c-11.json"]


def test_acknowledged_deliveries_go_and_waiting_ones_stay(catalog: Catalog) -> None:
    catalog.mailbox.store("c-0.json", [delivery(1), delivery(2)])
    catalog.mailbox.acknowledge("", "bob", ids=["d1"])
    catalog.accepted.accept([("inbox", "m1")], ["f1"], [])
    Cleanup(catalog, None, keep=1).delete_expired()
    assert catalog.accepted.known("inbox", ["m1"]) == {"m1"}
    # As if it were long ago.
    Cleanup(catalog, None, keep=-1).delete_expired()
    assert catalog.accepted.known("inbox", ["m1"]) == set()
    assert [one.id for one in catalog.mailbox.pending("", "bob")] == ["d2"]
    assert catalog.mailbox.store("c-1.json", [delivery(1), delivery(2)]) == 1


def test_an_id_is_the_same_message_for_as_long_as_is_promised(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, keep=30)) as served:
        assert _publish(served) == 202
        assert _publish(served) == 200
    with pytest.raises(SettingsError, match="keep is more than 0"):
        settings_in(tmp_path, keep=0)


def _publish(served: Served) -> int:
    answer = served.client().post("/v1/messages", json={"id": "m1", "xml": "<a/>"})
    return answer.status_code
