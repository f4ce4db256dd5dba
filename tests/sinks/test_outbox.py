"""The outbox: batches are published exactly once and completely, in every form."""

import json
import os
import resource
import subprocess
import sys
from base64 import b64decode
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tamis import SinkError
from tamis.model.batch import Batch
from tamis.sinks.outbox import Outbox
from tamis.sinks.published import Publication, safe_name
from tamis.sinks.xml_content import as_xml_content
from tests.helpers import ROOT
from tests.helpers.delivery_rows import TIME, batches, deliveries, delivery

BATCH = Batch("c1", 0)


def publish(outbox: Outbox, batch: Batch, rows: list[dict[str, Any]]) -> Publication:
    return outbox.publish(batch, outbox.write(batch, 0, batches(rows)))


def rows_of(outbox: Outbox, publication: Publication, **filters: str) -> list[dict[str, Any]]:
    return [row for batch in outbox.read(publication, **filters) for row in batch.to_pylist()]


def files(folder: Path) -> set[str]:
    """The files in the outbox except manifests."""
    return {str(path.relative_to(folder)) for path in (folder / "data").rglob("*") if path.is_file()}


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_rows_come_back_as_they_were(tmp_path: Path, form: Literal["parquet", "jsonl"]) -> None:
    rows = [delivery(1, payload="<a>é\u2028</a>".encode()), delivery(2, payload=b"<a>\xff\x00</a>")]
    outbox = Outbox(tmp_path, form)
    publication = publish(outbox, BATCH, rows)
    assert rows_of(outbox, publication) == rows
    assert (publication.rows, publication.form) == (2, form)
    [part] = publication.parts
    assert part.bytes == (tmp_path / part.path).stat().st_size


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_tenants_and_subscribers_can_be_read_alone(tmp_path: Path, form: Literal["parquet", "jsonl"]) -> None:
    outbox = Outbox(tmp_path, form)
    rows = deliveries(range(20))
    publication = publish(outbox, BATCH, rows)
    for tenant in ("t0", "t1"):
        wanted = [row for row in rows if row["tenant"] == tenant]
        assert rows_of(outbox, publication, tenant=tenant) == wanted
        assert rows_of(outbox, publication, tenant=tenant, subscriber="bob1") == [
            row for row in wanted if row["subscriber"] == "bob1"
        ]
    # No file has rows of two tenants.
    for part in publication.parts:
        assert part.path.startswith(f"data/{part.tenant}/")


def test_lines_are_text_where_they_can_be(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, "jsonl")
    [part] = publish(
        outbox, BATCH, [delivery(1, payload="<é/>".encode()), delivery(2, payload=b"\xff")]
    ).parts
    text, packed = [json.loads(line) for line in (tmp_path / part.path).read_bytes().splitlines()]
    assert (text["payload"], "packed" in text) == ("<é/>", False)
    assert (packed["payload"], packed["packed"]) == ("/w==", "base64")
    assert text["received"] == TIME.isoformat(timespec="microseconds")


def test_xml_is_one_document_a_subscriber(tmp_path: Path) -> None:
    messages = {
        b"<a>1</a>": b"<a>1</a>",
        b"<?xml version='1.0' encoding='UTF-8'?>\n<!-- c --><a/>": b"<a/>",
        b"<!DOCTYPE a SYSTEM 'a.dtd'>\n<a x='<!DOCTYPE'>&lt;</a>".replace(
            b"'<!", b"'!"
        ): b'<a x="!DOCTYPE">&lt;</a>',
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"): "<a>é</a>".encode(),
        '\ufeff<?xml version="1.0"?><a>é</a>'.encode("utf-16-le"): "<a>é</a>".encode(),
        b"<p:a xmlns:p='urn:p' xmlns='urn:q'><b/></p:a>": b'<p:a xmlns:p="urn:p" xmlns="urn:q"><b/></p:a>',
    }
    strange = [
        b"<a",
        b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        b"\xff\xff",
        b"<a>&e;</a>",
        b"</delivery>",
        b"</content><delivery/><content>",
    ]
    payloads = [*messages, *strange]
    outbox = Outbox(tmp_path, "xml")
    rows = [delivery(number, 'b"<ö', "t", payload) for number, payload in enumerate(payloads)]
    rows[0]["message"] = "a\x01&\"'\n"
    [part] = publish(outbox, BATCH, rows).parts
    root = etree.parse(str(tmp_path / part.path)).getroot()
    assert (root.tag, root.get("subscriber"), root.get("tenant")) == ("deliveries", 'b"<ö', "t")
    assert [child.get("id") for child in root] == [row["id"] for row in rows]
    assert root[0].get("message") == "a\ufffd&\"'\n"
    for child, inside in zip(root, messages.values(), strict=False):
        assert child.get("packed") is None
        [message] = child.iterchildren(etree.Element)
        assert etree.tostring(message, encoding="unicode", with_tail=False).encode() == inside
    for child, payload in zip(list(root)[len(messages) :], strange, strict=True):
        assert (child.get("packed"), len(child)) == ("base64", 0)
        assert b64decode(child.text or "") == payload


def test_xml_is_not_for_reading_back(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, "xml")
    publication = publish(outbox, BATCH, [delivery(1)])
    with pytest.raises(SinkError, match="no-rows"):
        list(outbox.read(publication))


@given(st.text(max_size=300), st.text(max_size=300))
def test_two_names_are_never_one_file(one: str, other: str) -> None:
    names = safe_name(one), safe_name(other)
    assert (names[0] == names[1]) == (one == other)
    for name in names:
        assert 0 < len(name) < 200
        assert name.isascii()
        assert "/" not in name
        assert not name.startswith((".", "_"))


@pytest.mark.parametrize("form", ["jsonl", "xml"])
def test_odd_names_have_files_of_their_own(tmp_path: Path, form: Literal["jsonl", "xml"]) -> None:
    names = ["", ".", "..", "../../x", "a/b", "a%2Fb", "x" * 300, "x" * 301, "~", "-", "%-", "ö\n", "\0"]
    outbox = Outbox(tmp_path, form)
    for tenant in names[:5]:
        batch = Batch("c", len(tenant))
        rows = [delivery(at, name, tenant) for at, name in enumerate(names)]
        publication = publish(outbox, batch, rows)
        assert {part.subscriber for part in publication.parts} == set(names)
        assert len({part.path for part in publication.parts}) == len(names)
    assert all((tmp_path / "data") in path.resolve().parents for path in tmp_path.rglob(f"*.{form}"))


def test_a_published_batch_stays_as_it_is(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    first = publish(outbox, BATCH, deliveries(range(8)))
    before = files(tmp_path)
    assert publish(outbox, BATCH, deliveries(range(3))) == first
    assert outbox.find(BATCH) == first
    assert files(tmp_path) == before
    assert [*outbox.published()] == [first]


def test_unpublished_files_do_not_count_and_are_swept(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.write(BATCH, 0, batches(deliveries(range(8))))
    outbox.write(BATCH, 5, batches(deliveries(range(8, 12))))
    (tmp_path / "data" / "t0" / "c1-0" / ".draft-x").write_bytes(b"of a task that was killed")
    assert [*outbox.published()] == []
    assert outbox.find(BATCH) is None
    publication = publish(outbox, BATCH, deliveries(range(12)))
    assert files(tmp_path) == {part.path for part in publication.parts}


def test_a_task_that_outlives_its_driver_changes_nothing_that_counts(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    rows = deliveries(range(8))
    publication = publish(outbox, BATCH, rows)
    outbox.write(BATCH, 0, batches(deliveries(range(3))))
    assert rows_of(outbox, publication) == rows


def test_a_reset_checkpoint_overwrites_nothing(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    for checkpoint in ("c1", "c2"):
        for number in (0, 1):
            publish(outbox, Batch(checkpoint, number), [delivery(number)])
    assert {one.batch for one in outbox.published()} == {Batch(c, n) for c in ("c1", "c2") for n in (0, 1)}


def test_batches_come_in_order_even_if_the_clock_is_set_back(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    for number in range(12):
        publish(outbox, Batch("a", number), [delivery(number)])
        publish(outbox, Batch("b-c", number), [delivery(number)])
    os.utime(tmp_path / "manifests" / "a-5.json", (0, 0))
    found = [one.batch for one in outbox.published()]
    assert len(found) == 24
    for checkpoint in ("a", "b-c"):
        numbers = [batch.number for batch in found if batch.checkpoint == checkpoint]
        assert all(one < next for one, next in pairwise(numbers))
    assert [one.batch for one in outbox.newest_first()] == found[::-1]


def test_a_sweep_keeps_what_is_needed(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    publish(outbox, Batch("c", 0), [delivery(0)])
    for number in (1, 2):
        outbox.write(Batch("c", number), 0, batches([delivery(number)]))
    assert outbox.sweep(keep=[]) == []
    assert outbox.sweep(keep=[Batch("c", 1)], min_age=-1) == [f"data/{safe_name('')}/c-2"]
    assert len(files(tmp_path)) == 2
    assert [one.rows for one in outbox.published()] == [1]


def test_a_missing_part_is_reported(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    parts = outbox.write(BATCH, 0, batches([delivery(1)]))
    (tmp_path / parts[0].path).unlink()
    with pytest.raises(SinkError, match="part-missing"):
        outbox.publish(BATCH, parts)
    assert [*outbox.published()] == []


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_elsewhere(form: Literal["parquet", "jsonl", "xml"]) -> None:
    """A file system that is no directory of this host."""
    outbox = Outbox("mock:///outbox", form)
    outbox.write(BATCH, 3, batches(deliveries(range(4))))
    publication = publish(outbox, BATCH, deliveries(range(8)))
    assert publish(outbox, BATCH, []) == publication
    assert [*outbox.published()] == [publication]
    outbox.write(Batch("c1", 1), 0, batches([delivery(1)]))
    assert outbox.sweep(keep=[], min_age=-1e10) == [f"data/{safe_name('')}/c1-1"]
    if form != "xml":
        assert len(rows_of(outbox, publication)) == 8


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="bad-form"):
        Outbox(tmp_path, "csv")  # type: ignore[arg-type]
    with pytest.raises(SinkError, match="sink-url"):
        Outbox("gopher://host/path")


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_a_full_disk_is_reported_and_leaves_nothing(
    tmp_path: Path, form: Literal["parquet", "jsonl", "xml"]
) -> None:
    # A limit on the size of files stands for a disk that has no more room.
    outbox = Outbox(tmp_path, form)
    large = [delivery(1, payload=b"<a>" + os.urandom(100_000).hex().encode() + b"</a>")]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(SinkError, match="make room") as error:
            outbox.write(BATCH, 0, batches(large))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.code == "sink-full"
    assert str(tmp_path) in error.value.reason
    assert files(tmp_path) == set()
    assert publish(outbox, BATCH, large).rows == 1


def test_a_read_only_disk_is_reported(small_disk: Path) -> None:
    outbox = Outbox(small_disk / "outbox")
    parts = outbox.write(BATCH, 0, batches([delivery(1)]))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(SinkError, match="the right to write") as error:
        outbox.write(BATCH, 1, batches([delivery(2)]))
    assert error.value.code == "sink-denied"
    with pytest.raises(SinkError, match="sink-denied"):
        outbox.publish(BATCH, parts)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert [*outbox.published()] == []
    assert outbox.publish(BATCH, parts).rows == 1


def test_a_manifest_without_room_publishes_nothing(small_disk: Path) -> None:
    outbox = Outbox(small_disk / "outbox")
    parts = outbox.write(BATCH, 0, batches([delivery(1)]))
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))
    with pytest.raises(SinkError, match="make room"):
        outbox.publish(BATCH, parts)
    assert [*outbox.published()] == []
    (small_disk / "ballast").unlink()
    assert outbox.publish(BATCH, parts).rows == 1
    assert [one.rows for one in outbox.published()] == [1]


def test_an_invalid_url_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match="sink-unreachable"):
        Outbox(tmp_path / "file" / "outbox").write(BATCH, 0, batches([delivery(1)]))


def test_a_damaged_manifest_is_reported(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    publish(outbox, BATCH, [delivery(1)])
    (tmp_path / "manifests" / "c1-0.json").write_text("{")
    with pytest.raises(SinkError, match="manifest-damaged"):
        list(outbox.published())


def test_messages_as_content_of_xml() -> None:
    assert as_xml_content([b"<?xml version='1.0'?><a/>", b"<a"]) == [b"<a/>", None]
    assert as_xml_content([b"<a/>text<b/>", b""]) == [b"<a/>text<b/>", b""]


@pytest.mark.parametrize("kind", ["outbox", "replay"])
def test_killed_anywhere_it_is_there_once_or_not(kind: str) -> None:
    """In a child process, because it forks, and this process may have threads."""
    command = [sys.executable, "-m", "tests.helpers.publish_killed", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_an_empty_task_writes_nothing(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    assert outbox.write(BATCH, 0, []) == []
    assert pa.Table.from_batches(outbox.read(publish(outbox, BATCH, [])), outbox.schema).num_rows == 0
