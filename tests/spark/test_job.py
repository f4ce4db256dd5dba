"""The job as people run it: messages in, deliveries out, subscriptions changing, a clean stop."""

import json
import os
import shutil
import subprocess
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription
from tamis.pipeline.batch_log import BatchLog
from tests.helpers.jobs import TAMIS, Folder, forget_checkpoints, running, until_running
from tests.helpers.waiting import until


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command; returns its output."""
    return subprocess.run([*TAMIS, *arguments], capture_output=True, text=True, check=False)


def has_delivered(folder: Folder, message: str) -> bool:
    return any(row["message"] == message for row in folder.deliveries())


def deliver(folder: Folder, *names: str) -> None:
    """Publish messages, each when the one before is delivered."""
    for name in names:
        folder.publish(name, b"<a/>")
        until(partial(has_delivered, folder, name), name)


def test_messages_reach_those_who_want_them_and_subscriptions_change_meanwhile(tmp_path: Path) -> None:
    source = "[[source]]\nname = 'inbox'\npath = 'inbox'\ntenant = 't'\nschema = 'a.dtd'\n"
    folder = Folder(tmp_path, source)
    (tmp_path / "a.dtd").write_text("<!ELEMENT a (b*)> <!ELEMENT b EMPTY>")
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "//b", id="q1", tenant="t"))
        # Of the messages that it transforms, l1 does not conform to the DTD.
        query = "for $b in //b return <found>{ $b }</found>"
        catalog.add(NewSubscription("cat", query, id="q3", tenant="t"))
        catalog.add(NewSubscription("eve", "//b", id="q1", tenant="other"))
        with running(folder) as job:
            until_running(job)
            folder.publish("m1.xml", b"<a><b/></a>")
            folder.publish("bad.xml", b"<a><b></a>")
            folder.publish("lines.jsonl", b'{"id": "l1", "xml": "<b/>"}\n{"id": "l2", "xml": "<c/>"}\n')
            until(lambda: folder.read() == 4, "the first messages")
            catalog.add(NewSubscription("bob", "/a", id="q2", tenant="t"))
            catalog.remove("q1", tenant="t")
            folder.publish("m2.xml", b"<a><b/></a>")
            until(lambda: folder.read() == 5, "the message after the change")
            assert job.stop() == 0
    rows = folder.deliveries()
    found = sorted((row["message"], row["subscription"], row["subscriber"]) for row in rows)
    assert found == [
        ("l1", "q1", "ann"),
        ("l1", "q3", "cat"),
        ("m1.xml", "q1", "ann"),
        ("m1.xml", "q3", "cat"),
        ("m2.xml", "q2", "bob"),
        ("m2.xml", "q3", "cat"),
    ]
    transformed = {row["payload"] for row in rows if row["subscription"] == "q3"}
    assert transformed == {b"<found><b/></found>"}
    assert {row["payload"] for row in rows if row["subscription"] == "q2"} == {b"<a><b/></a>"}
    assert {row["tenant"] for row in rows} == {"t"}
    (letter,) = folder.letters()
    assert (letter["id"], letter["code"], letter["raw"]) == ("bad.xml", "mismatched-tag", b"<a><b></a>")
    status = folder.status()
    assert status is not None
    assert (status.state, status.subscriptions) == ("stopped", 3)
    (shown,) = status.sources
    totals = shown.totals
    assert (totals.read, totals.matched, totals.unmatched, totals.dead) == (5, 3, 1, 1)
    generations = [record.generation for record in folder.records()]
    assert generations == sorted(generations)


def test_a_reset_checkpoint_overwrites_nothing_and_old_generations_go(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "/a", id="q"))
        for attempt in range(2):
            with running(folder) as job:
                until_running(job)
                for number in range(2):
                    name = f"m{attempt}{number}.xml"
                    folder.publish(name, b"<a/>")
                    until(partial(has_delivered, folder, name), name)
                    catalog.add(NewSubscription("bob", f"/b{attempt}{number}"))
                assert job.stop() == 0
            forget_checkpoints(folder)
    rows = folder.deliveries()
    assert {row["message"] for row in rows} == {"m00.xml", "m01.xml", "m10.xml", "m11.xml"}
    # Deliveries that the old checkpoint had not marked as done come again, with the same id.
    assert len({row["id"] for row in rows}) == 4
    assert [record.batch for record in folder.records()].count(0) == 2
    store = Store(folder.state / "generations")
    kept = [name for name in store.directory.iterdir() if name.suffix == ".json"] if store.directory else []
    assert 1 <= len(kept) <= 3


def test_the_store_may_be_lost_even_beneath_a_batch_that_has_begun(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with Catalog(folder.catalog) as catalog:
        with running(folder) as job:
            until_running(job)
            for number in range(3):
                catalog.add(NewSubscription("ann", "/a", id=f"q{number}"))
                deliver(folder, f"m{number}.xml")
            assert job.stop() == 0
        last = folder.records()[-1]
        (file,) = (folder.state / "batches" / "inbox").glob("*.jsonl")
        BatchLog(file.parent, file.stem).begin(last.batch + 1, lambda: last.generation)
        shutil.rmtree(folder.state / "generations")
        catalog.remove("q0")
        with running(folder) as job:
            until_running(job)
            # The message of the batch that had begun.
            deliver(folder, "m3.xml")
            # And under a job that runs.
            shutil.rmtree(folder.state / "generations")
            catalog.add(NewSubscription("bob", "/a", id="q3"))
            for number in count(4):
                deliver(folder, f"m{number}.xml")
                if any(row["subscription"] == "q3" for row in folder.deliveries()):
                    break
            assert job.stop() == 0
    assert [row["subscription"] for row in folder.deliveries() if row["message"] == "m3.xml"] == ["q1", "q2"]
    generations = [record.generation for record in folder.records()]
    assert generations == sorted(generations)
    assert generations[-1] > last.generation
    assert "its generation is lost" in folder.log.read_text()


def test_a_store_that_is_damaged_under_a_job_is_compiled_again(tmp_path: Path) -> None:
    """Its files are cut short while the driver and a worker have them mapped."""
    folder = Folder(tmp_path)
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "/a", id="q0"))
        with running(folder) as job:
            until_running(job)
            deliver(folder, "m0.xml")
            for path in (folder.state / "generations").glob("*.segment"):
                os.truncate(path, path.stat().st_size // 2)
            deliver(folder, "m1.xml")
            assert job.stop() == 0
    found = [(row["message"], row["subscription"]) for row in folder.deliveries()]
    assert sorted(found) == [("m0.xml", "q0"), ("m1.xml", "q0")]
    first, *_, last = (record.generation for record in folder.records())
    assert last > first
    assert "segment-damaged" in folder.log.read_text()


def test_a_checkpoint_that_is_restored_from_a_copy_loses_nothing(tmp_path: Path) -> None:
    """Its numbers are given out again, to other batches than those in the outbox."""
    folder = Folder(tmp_path)
    places = ("state", "inbox", "inbox.done", "inbox.ledger")
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "/a", id="q"))
        with running(folder) as job:
            until_running(job)
            deliver(folder, "m0.xml")
            assert job.stop() == 0
        shutil.copytree(tmp_path, tmp_path / "copy", ignore=lambda path, names: {"copy", "outbox", "spark"})
        with running(folder) as job:
            until_running(job)
            deliver(folder, "m1.xml", "m2.xml")
            assert job.stop() == 0
        for name in places:
            place = tmp_path / name
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
            if (tmp_path / "copy" / name).exists():
                (tmp_path / "copy" / name).rename(place)
        with running(folder) as job:
            until_running(job)
            deliver(folder, "m3.xml", "m4.xml")
            assert job.stop() == 0
    assert {row["message"] for row in folder.deliveries()} >= {f"m{number}.xml" for number in range(5)}


def test_one_job_per_state_directory(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with running(folder) as job:
        until_running(job)
        second = command("run", "--config", str(tmp_path / "tamis.toml"))
        assert second.returncode == 1
        assert "job-running" in second.stderr
        seen = command("status", "--config", str(tmp_path / "tamis.toml"), "--json")
        assert seen.returncode == 0
        assert json.loads(seen.stdout)["state"] == "running"


@pytest.mark.parametrize("line", ["interval = -1", "[[source]]\nname = 'x'"])
def test_settings_that_cannot_be_are_said(tmp_path: Path, line: str) -> None:
    (tmp_path / "tamis.toml").write_text(line)
    refused = command("run", "--config", str(tmp_path / "tamis.toml"))
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert refused.stderr.startswith("tamis: ")
