"""An inbox without Spark: files of all kinds, the ledger, the planning of batches, finished files."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Limits
from tamis.model.envelope import VERSION
from tamis.sources.directory import DirectorySource, Inbox, Offset, SourceError
from tamis.sources.envelopes import read_envelopes
from tamis.sources.ledger import FileIdentity, Ledger, LedgerError
from tamis.sources.parquet import ParquetRows
from tests.helpers.inbox_files import drop, drop_lines, drop_table, records


def test_strings_that_declare_another_encoding_are_refused(source: DirectorySource) -> None:
    """They are UTF-8: the reader would decode them as they declare."""
    declared = "<?xml version='1.0' encoding='ISO-8859-1'?><a>{}</a>"
    texts = [declared.format("é"), declared.format("e")]
    drop_lines(source.path, "a.jsonl", {"a1": texts[0], "a2": texts[1]})
    drop_table(source.path, "b.parquet", {"id": ["b1", "b2"], "xml": texts})
    drop_table(source.path, "c.parquet", {"id": ["c1"], "xml": [texts[0].encode("latin-1")]})
    codes = {name: (row["code"], row["encoding"]) for name, row in rows(source).items()}
    assert codes.pop("a.jsonl#1") == codes.pop("b.parquet#1") == ("encoding-mismatch", None)
    assert codes == {"a2": (None, "UTF-8"), "b2": (None, "UTF-8"), "c1": (None, None)}


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    return DirectorySource("feed", "acme", tmp_path / "inbox")


def batches(
    source: DirectorySource, start: Offset | None = None
) -> tuple[list[list[dict[str, Any]]], Offset]:
    """All that waits in an inbox, batch by batch, as a query would read it; and where it ends."""
    inbox = Inbox(source, tasks=2)
    here = start or inbox.first_offset()
    given = []
    while (end := inbox.advance(here, inbox.list_files(here))) != here:
        tasks = inbox.slices(Offset.from_json(here.to_json()), Offset.from_json(end.to_json()))
        rows = [row for task in tasks for batch in read_envelopes(source, task) for row in batch.to_pylist()]
        given.append(rows)
        here = end
    inbox.close()
    return given, here


def rows(source: DirectorySource) -> dict[str, dict[str, Any]]:
    """All that waits, by id; ids are unique."""
    given = [row for batch in batches(source)[0] for row in batch]
    by_id = {row["id"]: row for row in given}
    assert len(by_id) == len(given)
    return by_id


def test_all_kinds(source: DirectorySource) -> None:
    drop(source.path, "a.xml", b"<a/>")
    drop(source.path, "b.xml.gz", b"<b/>")
    drop_lines(source.path, "c.jsonl", {"c1": "<c>é</c>", "c2": "<c/>"})
    drop_lines(source.path, "d.jsonl.gz", {"d1": "<d/>"})
    drop_table(source.path, "e.parquet", {"id": ["e1", "e2"], "xml": [b"<e/>", b"<e>2</e>"]})
    drop_table(source.path, "f.parquet", {"xml": ["<f/>", None]})
    drop(source.path, "g.csv", b"1,2")
    (source.path / ".hidden.xml").write_bytes(b"<no/>")
    (source.path / "_no.xml").write_bytes(b"<no/>")
    (source.path / "no.xml.part").write_bytes(b"<no/>")
    (source.path / "folder.xml").mkdir()

    given = rows(source)
    assert {name: (row["xml"], row["encoding"], row["code"]) for name, row in given.items()} == {
        "a.xml": (b"<a/>", None, None),
        "b.xml.gz": (b"<b/>", None, None),
        "c1": ("<c>é</c>".encode(), "UTF-8", None),
        "c2": (b"<c/>", "UTF-8", None),
        "d1": (b"<d/>", "UTF-8", None),
        "e1": (b"<e/>", None, None),
        "e2": (b"<e>2</e>", None, None),
        "f.parquet#1": (b"<f/>", "UTF-8", None),
        "f.parquet#2": (b"", None, "no-xml"),
        "g.csv": (b"", None, "unknown-kind"),
    }
    assert given["c2"]["offset"] == "c.jsonl#2 at 37"
    for row in given.values():
        assert (row["version"], row["tenant"], row["source"], row["hops"]) == (VERSION, "acme", "feed", 0)
        assert row["received"].utcoffset().total_seconds() == 0


def test_records_of_files(source: DirectorySource) -> None:
    source = replace(source, record="rec", schema="feed.dtd")
    drop(source.path, "a.xml", b'<all xmlns="u"><rec>1</rec><rec>2</all>')
    drop(source.path, "b.xml.gz", b"<all><rec>3</rec></all>")
    given = rows(source)
    assert {name: (row["xml"], row["code"]) for name, row in given.items()} == {
        "a.xml#1": (b'<rec xmlns="u">1</rec>', None),
        "a.xml#2": (b"<rec>2</all>", "truncated-record"),
        "b.xml.gz#1": (b"<rec>3</rec>", None),
    }
    assert given["a.xml#2"]["offset"] == "a.xml#2 at 27"
    assert given["a.xml#1"]["schema"] == "feed.dtd"


@pytest.mark.parametrize(
    ("name", "content", "codes"),
    [
        ("a.jsonl", b'{"xml": "<a/>"}\n\n  \nnot json\n{"xml": 1}', [None, "bad-json", "no-xml"]),
        ("a.jsonl", b"[]", ["no-xml"]),
        ("a.jsonl", b'{"id": [], "xml": ""}', ["bad-id"]),
        ("a.jsonl", b'{"xml": "\\ud800"}', ["bad-json"]),
        ("a.jsonl", b"\xff\xfe", ["bad-json"]),
        ("a.jsonl", b"[" * 50_000, ["bad-json"]),
        ("a.jsonl", b'{"xml": "' + b"x" * 200_000 + b'"}\n{"xml": "<a/>"}', ["line-limit", None]),
        ("a.jsonl", b"", []),
        ("a.xml", b"<a>" + b"x" * 2000, ["document-limit"]),
        ("a.xml.gz", b"<a>" + b"x" * 2000, ["document-limit"]),
        ("a.parquet", b"PAR1 and then nothing", ["bad-parquet"]),
        ("a.parquet", b"", ["bad-parquet"]),
    ],
)  # fmt: skip
def test_broken_messages_are_set_aside(
    source: DirectorySource, name: str, content: bytes, codes: list[str | None]
) -> None:
    drop(source.path, name, content)
    given = [row for batch in batches(replace(source, limits=Limits(document=1000)))[0] for row in batch]
    assert [row["code"] for row in given] == codes
    assert all(row["reason"] for row in given if row["code"])
    assert all(len(row["xml"]) <= 64 << 10 for row in given)


def test_broken_gzip_and_tables_without_messages(source: DirectorySource) -> None:
    source.path.mkdir()
    (source.path / "a.xml.gz").write_bytes(b"\x1f\x8b\x08 no gzip")
    (source.path / "b.jsonl.gz").write_bytes(b"no gzip")
    drop_table(source.path, "c.parquet", {"text": ["<a/>"]})
    drop_table(source.path, "d.parquet", {"xml": []})
    given = rows(source)
    assert {name: row["code"] for name, row in given.items()} == {
        "a.xml.gz": "bad-gzip",
        "b.jsonl.gz#1": "bad-gzip",
        "c.parquet#1": "no-xml",
        "d.parquet#1": "no-xml",
    }


def drop_records(inbox: Path, name: str, count: int) -> None:
    drop(inbox, name, records(range(count)))


def drop_many_lines(inbox: Path, name: str, count: int) -> None:
    drop_lines(inbox, name, {f"{name}-{n}": f"<rec>{n}</rec>" for n in range(count)})


def drop_many_rows(inbox: Path, name: str, count: int) -> None:
    drop_table(inbox, name, {"xml": [b"<rec>%d</rec>" % n for n in range(count)]}, rows_per_group=70)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (drop_records, "big.xml"),
        (drop_records, "big.xml.gz"),
        (drop_many_lines, "big.jsonl"),
        (drop_many_lines, "big.jsonl.gz"),
        (drop_many_rows, "big.parquet"),
    ],
)
def test_a_large_file_is_spread_over_batches(
    source: DirectorySource, write: Callable[[Path, str, int], None], name: str
) -> None:
    source = replace(source, record="rec", max_records=300)
    write(source.path, name, 1000)
    drop_records(source.path, "small.xml", 7)
    given, end = batches(source)
    assert [len(batch) for batch in given] == [300, 300, 300, 107]
    assert end == Offset(2)
    numbers = [int(row["xml"][5:-6]) for batch in given for row in batch]
    assert sorted(numbers) == sorted([*range(1000), *range(7)])

    # Another process that starts in the middle plans the same batches.
    inbox = Inbox(source, tasks=2)
    first = inbox.advance(Offset(0), inbox.list_files(Offset(0)))
    second = inbox.advance(first, inbox.list_files(first))
    again = Inbox(source, tasks=3).slices(first, second)
    replayed = [row for task in again for batch in read_envelopes(source, task) for row in batch.to_pylist()]
    assert sorted(row["id"] for row in replayed) == sorted(row["id"] for row in given[1])
    assert inbox.slices(first, first) == []
    inbox.close()


def test_a_batch_takes_so_many_files_and_bytes(source: DirectorySource) -> None:
    for number in range(10):
        drop(source.path, f"{number}.xml", b"<a>%s</a>" % (b"x" * 10_000))
    by_files, _ = batches(replace(source, max_files=4))
    assert [len(batch) for batch in by_files] == [4, 4, 2]
    by_bytes, _ = batches(replace(source, max_bytes=50_000))
    assert [len(batch) for batch in by_bytes] == [4, 4, 2]
    # At least one, however large.
    assert [len(batch) for batch in batches(replace(source, max_bytes=1))[0]] == [1] * 10
    inbox = Inbox(replace(source, max_files=4), tasks=2)
    assert inbox.advance_fully(Offset(0), inbox.list_files(Offset(0))) == Offset(10)


def test_pieces_are_shared_evenly(source: DirectorySource) -> None:
    source = replace(source, record="rec", max_bytes=4 << 20)
    record = b"<rec>" + b"x" * 10_000 + b"</rec>"
    drop(source.path, "big.xml", b"<all>" + record * 300 + b"</all>")
    for number in range(200):
        drop(source.path, f"{number}.xml", b"<all><rec/></all>")
    inbox = Inbox(source, tasks=2)
    end = inbox.advance(Offset(0), inbox.list_files(Offset(0)))
    assert end == Offset(201)
    one, other = (sum(slice_.size for slice_ in task) for task in inbox.slices(Offset(0), end))
    assert abs(one - other) < 1 << 20


def test_thousands_of_tiny_files(source: DirectorySource) -> None:
    for number in range(2000):
        drop(source.path, f"{number}.xml", b"<a/>")
    (given,), end = batches(source)
    assert len(given) == 2000
    assert end == Offset(2000)
    assert len({row["id"] for row in given}) == 2000


def test_a_file_that_vanishes_or_is_replaced(source: DirectorySource) -> None:
    drop(source.path, "a.xml", b"<a/>")
    drop(source.path, "b.xml", b"<b/>")
    drop(source.path, "c.xml", b"<c/>")
    inbox = Inbox(source, tasks=1)
    end = inbox.advance(Offset(0), inbox.list_files(Offset(0)))
    (source.path / "a.xml").unlink()
    drop(source.path, "b.xml", b"<b>new</b>")
    (task,) = inbox.slices(Offset(0), end)
    given = {row["id"]: row for batch in read_envelopes(source, task) for row in batch.to_pylist()}
    assert {name: row["code"] for name, row in given.items()} == {
        "a.xml": "vanished",
        "b.xml": "vanished",
        "c.xml": None,
    }
    # The new content is a new file with another id.
    later, _ = batches(source, end)
    assert [(row["id"], row["xml"]) for batch in later for row in batch] == [("b.xml~3", b"<b>new</b>")]


def test_a_file_vanishes_before_it_is_planned(source: DirectorySource) -> None:
    source = replace(source, record="rec")
    drop(source.path, "a.xml", b"<rec/>")
    drop(source.path, "b.xml", b"<rec/>")
    inbox = Inbox(source, tasks=1)
    seen = inbox.list_files(Offset(0))
    (source.path / "a.xml").unlink()
    end = inbox.advance(Offset(0), seen)
    assert end == Offset(2)
    (task,) = inbox.slices(Offset(0), end)
    given = [row for batch in read_envelopes(source, task) for row in batch.to_pylist()]
    assert sorted((row["id"], row["code"]) for row in given) == [("a.xml#1", "vanished"), ("b.xml#1", None)]


def test_an_inbox_that_is_taken_away(source: DirectorySource) -> None:
    inbox = Inbox(source, tasks=1)
    source.path.rmdir()
    with pytest.raises(SourceError, match="cannot be listed"):
        inbox.list_files(Offset(0))


@pytest.mark.parametrize("after", ["move", "delete", "keep"])
def test_finished_files_are_moved_deleted_or_kept(source: DirectorySource, after: Any) -> None:
    source = replace(source, after=after)
    drop(source.path, "a.xml", b"<a/>")
    drop(source.path, "b.xml", b"<b/>")
    inbox = Inbox(source, tasks=1)
    seen = inbox.list_files(Offset(0))
    inbox.commit(Offset(1))
    inbox.commit(Offset(1))
    left = sorted(path.name for path in source.path.iterdir())
    assert left == (["a.xml", "b.xml"] if after == "keep" else ["b.xml"])
    assert [path.name for path in source.done.glob("*")] == (["a.xml"] if after == "move" else [])
    # No file is read again, here or in another process; a new query starts with the remaining files.
    assert inbox.list_files(Offset(0)) == seen
    again = Inbox(source, tasks=1)
    assert again.list_files(Offset(0)) == seen
    assert again.first_offset() == Offset(1)
    # A batch that another query still has to read finds a file where it was moved.
    if after == "move":
        (task,) = again.slices(Offset(0), Offset(1))
        assert [batch.column("xml").to_pylist() for batch in read_envelopes(source, task)] == [[b"<a/>"]]
        # Moved back it is wanted again.
        (source.done / "a.xml").rename(source.path / "a.xml")
        given, _ = batches(source, seen)
        assert [row["id"] for batch in given for row in batch] == ["a.xml~2"]
        inbox.commit(Offset(3))
        assert sorted(path.name for path in source.done.glob("*")) == ["a.xml~2", "b.xml"]


@pytest.mark.parametrize("after", ["move", "delete", "keep"])
def test_a_ledger_that_is_older_than_the_checkpoint(source: DirectorySource, after: Any) -> None:
    """Its next numbers are of files that were read: what got them would be in no batch."""
    source = replace(source, after=after, record="rec", max_records=4)
    drop_records(source.path, "a.xml", 2)
    _, first = batches(source)
    older = source.ledger.read_bytes()
    drop_records(source.path, "b.xml", 2)
    drop_records(source.path, "c.xml", 5)
    inbox = Inbox(source, tasks=1)
    half = inbox.advance(first, inbox.list_files(first))
    end = inbox.advance(half, inbox.list_files(half))
    inbox.close()
    assert (half.file, half.number, end) == (2, 2, Offset(3))
    newer = source.ledger.read_bytes()

    source.ledger.write_bytes(older)
    drop(source.path, "d.xml", b"<rec/>")
    inbox = Inbox(source, tasks=1)
    for start in (half, end):
        with pytest.raises(
            LedgerError, match=r"bad-ledger: .*older than the checkpoint: it knows 1 files, and 3"
        ):
            inbox.list_files(start)
    # A batch that was left half done is planned before anything is looked for.
    for begun in ((first, half), (half, end)):
        with pytest.raises(LedgerError, match="restore both from one moment, or remove"):
            inbox.slices(*begun)
    assert source.ledger.read_bytes() == older
    assert sorted(path.name for path in source.path.iterdir()) == ["a.xml", "b.xml", "c.xml", "d.xml"]
    assert not source.done.exists()

    source.ledger.write_bytes(newer)
    given, _ = batches(source, end)
    assert [row["id"] for batch in given for row in batch] == ["d.xml#1"]


def test_the_ledger_survives_a_crash_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    identities = [FileIdentity(f"{number}.xml", number, 0, number) for number in range(6)]
    ledger = Ledger(path)
    ledger.add_files(identities[:3], 1)
    ledger.finish([0], removed=True)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        complete = sum(len(b"".join(lines[: n + 1])) <= size for n in range(len(lines)))
        again = Ledger(path)
        assert again.next == min(complete, 3)
        again.add_files(identities, 2)
        # Files that were lost in the crash get the same numbers: no offset had used them.
        assert [again.entry(number).identity for number in range(3)] == identities[:3]
        assert Ledger(path).next == again.next


def test_two_processes_share_a_ledger(tmp_path: Path) -> None:
    one, other = Ledger(tmp_path / "ledger"), Ledger(tmp_path / "ledger")
    one.add_files([FileIdentity("a", 1, 1, 1)], 1)
    other.add_files([FileIdentity("b", 1, 1, 2), FileIdentity("a", 1, 1, 1)], 1)
    one.add_files([FileIdentity("b", 1, 1, 2), FileIdentity("c", 1, 1, 3)], 1)
    assert [one.entry(number).identity.name for number in range(one.next)] == ["a", "b", "c"]
    assert one.next == 3
    with pytest.raises(LedgerError, match="no file 9"):
        one.entry(9)


def test_names_that_are_no_text(source: DirectorySource) -> None:
    source.path.mkdir()
    name = os.fsdecode(b"caf\xe9.xml")
    (source.path / name).write_bytes(b"<a/>")
    assert list(rows(source)) == ["caf\\xe9.xml"]
    inbox = Inbox(source, tasks=1)
    inbox.commit(Offset(1))
    assert [path.name for path in source.done.iterdir()] == [name]


@pytest.mark.parametrize(
    "wrong", [{"record": "{uri"}, {"record": "a b"}, {"after": "burn"}, {"max_files": 0}, {"max_records": -1}]
)
def test_settings_that_cannot_be(source: DirectorySource, wrong: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="source feed"):
        replace(source, **wrong)


def test_one_line_does_not_stop_its_file(source: DirectorySource) -> None:
    """Ids that cannot be stored become dead letters, and the messages around them are read."""
    bad_ids = [r'"u\ud800"', r'"a\u0000b"', r'"a\nb"', '"%s"' % ("x" * 1001), "true", "1.5", "{}"]
    lines = [f'{{"id": {given}, "xml": "<r/>"}}' for given in bad_ids]
    lines = ['{"id": "first", "xml": "<r/>"}', *lines, '{"id": 7, "xml": "<r/>"}', r'{"xml": "\ud800"}']
    drop(source.path, "a.jsonl", "\n".join(lines).encode())
    given = rows(source)
    assert [row["code"] for row in given.values()] == [None, *["bad-id"] * len(bad_ids), None, "bad-json"]
    assert given["first"]["code"] is given["7"]["code"] is None
    assert given["a.jsonl#2"]["xml"].rstrip() == lines[1].encode()


def test_one_row_does_not_stop_its_table(source: DirectorySource) -> None:
    ids = pa.array([b"a", b"\xff", b"c\x00"], pa.binary()).view(pa.string())
    xml = pa.array([b"<r/>", b"<r/>", b"\xff"], pa.binary()).view(pa.string())
    drop_table(source.path, "a.parquet", {"id": ids, "xml": xml})
    drop_table(source.path, "b.parquet", {"id": ["b"], "xml": xml.slice(2)})
    late = pa.array([1 << 62], pa.timestamp("ms"))
    drop_table(source.path, "c.parquet", {"id": late, "xml": ["<r/>"]})
    given = rows(source)
    assert {name: row["code"] for name, row in given.items()} == {
        "a": None,
        "a.parquet#2": "bad-id",
        "a.parquet#3": "bad-id",
        # The XML reader refuses it.
        "b": None,
        "c.parquet#1": "bad-id",
    }
    assert given["b"]["xml"] == b"\xff"


def test_a_name_that_is_not_utf8(source: DirectorySource) -> None:
    for name in (b"\xff.xml", b"\xfe.what", b"\xfd.jsonl.gz", b"\xfc.parquet"):
        source.path.mkdir(exist_ok=True)
        Path(os.fsdecode(bytes(source.path) + b"/" + name)).write_bytes(b"<r/>")
    given = rows(source)
    assert {name: row["code"] for name, row in given.items()} == {
        r"\xff.xml": None,
        r"\xfe.what": "unknown-kind",
        r"\xfd.jsonl.gz#1": "bad-gzip",
        r"\xfc.parquet#1": "bad-parquet",
    }
    assert given[r"\xfe.what"]["reason"].startswith(r"\udcfe.what is none of")


def test_a_defect_of_a_reader_is_a_dead_letter(
    source: DirectorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any exception of a reader, on the driver or in a task: the other files are still read."""

    def fail(*_: object) -> Iterator[int]:
        raise ZeroDivisionError("oops")

    drop_lines(source.path, "a.jsonl", {"a": "<r/>"})
    drop_lines(source.path, "c.jsonl", {"c": "<r/>"})
    drop_table(source.path, "b.parquet", {"id": ["b"], "xml": ["<r/>"]})
    monkeypatch.setattr(ParquetRows, "messages", fail)
    monkeypatch.setattr(ParquetRows, "sizes", lambda *_: map(fail, [0]))
    given = rows(source)
    assert {name: row["code"] for name, row in given.items()} == {
        "a": None,
        "b.parquet#1": "unreadable",
        "c": None,
    }
    assert given["b.parquet#1"]["reason"] == "it cannot be read after message 0: ZeroDivisionError: oops"


def test_links_folders_and_loops_are_skipped_and_reported(
    source: DirectorySource, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    drop(source.path, "a.xml", b"<a/>")
    (tmp_path / "outside.xml").write_bytes(b"<secret/>")
    (source.path / "loop.xml").symlink_to("loop.xml")
    (source.path / "link.xml").symlink_to(tmp_path / "outside.xml")
    (source.path / "folder.xml").mkdir()
    os.mkfifo(source.path / "pipe.xml")
    inbox = Inbox(source, tasks=1)
    end = inbox.list_files(inbox.first_offset())
    assert end == inbox.list_files(end) == Offset(1)
    reports = sorted(record.getMessage() for record in caplog.records)
    assert reports == [
        "source feed: skipped folder.xml: it is a folder; move its files into the inbox",
        "source feed: skipped link.xml: it is a symbolic link; see the setting follow_links",
        "source feed: skipped loop.xml: it is a symbolic link; see the setting follow_links",
        "source feed: skipped pipe.xml: it is not a regular file",
    ]

    following = rows(replace(source, follow_links=True))
    assert {name: row["xml"] for name, row in following.items()} == {
        "a.xml": b"<a/>",
        "link.xml": b"<secret/>",
    }
    assert "skipped loop.xml: Too many levels of symbolic links" in caplog.text


def test_a_file_that_becomes_a_link_is_not_followed(source: DirectorySource, tmp_path: Path) -> None:
    drop(source.path, "a.xml", b"<a/>")
    inbox = Inbox(source, tasks=1)
    start = inbox.first_offset()
    end = inbox.advance(start, inbox.list_files(start))
    (source.path / "a.xml").rename(tmp_path / "moved.xml")
    (source.path / "a.xml").symlink_to(tmp_path / "moved.xml")
    (task,) = inbox.slices(start, end)
    assert [row["code"] for batch in read_envelopes(source, task) for row in batch.to_pylist()] == [
        "vanished"
    ]
    inbox.commit(end)
    assert (source.path / "a.xml").is_symlink()


def test_follow_links_is_a_boolean(source: DirectorySource) -> None:
    with pytest.raises(SourceError, match="follow_links is true or false"):
        replace(source, follow_links="yes")  # type: ignore[arg-type]  # as a settings file may have it
