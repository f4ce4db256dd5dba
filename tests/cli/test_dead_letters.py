"""`tamis dead-letters`: list, show, replay."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import SinkError, cli
from tamis.model.batch import Batch
from tamis.sinks.dead_letters import LETTER, DeadLetters, LetterFilter
from tamis.sinks.replay import Replays
from tamis.sources.directory import DirectorySource, Inbox
from tamis.sources.envelopes import read_envelopes

TIME = datetime(2020, 1, 31, 12, tzinfo=UTC)


def letter(number: int, **values: Any) -> dict[str, Any]:
    """A dead letter by its number: later ones came later."""
    return {
        "tenant": "",
        "source": "inbox",
        "id": f"m{number}",
        "offset": f"m{number}.xml",
        "received": TIME + timedelta(hours=number),
        "code": "not-well-formed",
        "reason": "an element has no end",
        "position": 7,
        "line": 2,
        "column": 4,
        "raw": b"<a>\n<b></a>",
    } | values


def write_letters(letters: DeadLetters, batch: Batch, rows: list[dict[str, Any]]) -> None:
    some = [pa.RecordBatch.from_pylist([row], schema=LETTER) for row in rows]
    letters.publish(batch, letters.write(batch, 0, some))


@pytest.fixture
def letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeadLetters:
    """Letters of two batches, where settings and commands find them."""
    monkeypatch.chdir(tmp_path)
    Path("inbox").mkdir()
    Path("tamis.toml").write_text(
        'dead_letters = "dead"\n[[source]]\nname = "inbox"\npath = "inbox"\n'
        '[[source]]\nkind = "kafka"\nname = "bus"\nservers = "localhost:1"\ntopics = "t"\n'
    )
    made = DeadLetters(tmp_path / "dead")
    write_letters(made, Batch("c", 0), [letter(0), letter(1, tenant="acme", code="depth-limit")])
    write_letters(
        made,
        Batch("c", 1),
        [
            letter(2, source="bus", reason="square [brackets] and \x1b[31m"),
            letter(3, code="document-limit", position=None, line=None, column=None),
        ],
    )
    return made


def run(*arguments: str) -> int:
    return cli.main(["dead-letters", *arguments])


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert run("list", "--json", *arguments) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("letters")
def test_letters_are_listed_the_newest_last(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys)
    assert [row["id"] for row in rows] == ["m0", "m1", "m2", "m3"]
    assert len({row["letter"] for row in rows}) == 4
    one = next(row for row in rows if row["id"] == "m0")
    assert {**one, "letter": ""} == {
        "letter": "", "tenant": "", "source": "inbox", "id": "m0", "offset": "m0.xml",
        "received": TIME.isoformat(), "encoding": None,
        "code": "not-well-formed", "reason": "an element has no end", "subscription": None,
        "delivery": None, "position": 7, "line": 2, "column": 4, "replayed": None,
    }  # fmt: skip


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (["--tenant", "acme"], {"m1"}),
        (["--source", "bus"], {"m2"}),
        (["--code", "depth-limit"], {"m1"}),
        (["--since", (TIME + timedelta(hours=2)).isoformat()], {"m2", "m3"}),
        (["--since", "1s"], set()),
        (["--tenant", "acme", "--source", "bus"], set()),
    ],
)
def test_lists_are_narrowed_down(
    capsys: pytest.CaptureFixture[str], filters: list[str], ids: set[str]
) -> None:
    assert {row["id"] for row in listed(capsys, *filters)} == ids


@pytest.mark.usefixtures("letters")
def test_a_long_list_ends_with_the_newest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json", "--limit", "1") == 0
    out, errors = capsys.readouterr()
    assert json.loads(out)["id"] == "m3"
    assert "older" in errors


@pytest.mark.usefixtures("letters")
def test_a_table_cannot_be_painted_by_a_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run("list") == 0
    out = capsys.readouterr().out
    assert "square [brackets] and ·[31m (line 2, column 4)" in out
    assert "\x1b" not in out


@pytest.mark.usefixtures("letters")
def test_show_marks_the_spot(capsys: pytest.CaptureFixture[str]) -> None:
    key = next(row["letter"] for row in listed(capsys) if row["id"] == "m0")
    assert run("show", key) == 0
    *_, text, mark = capsys.readouterr().out.splitlines()
    assert text.strip() == "<b></a>"
    assert text[mark.index("^")] == "<"
    assert text[mark.index("^") :] == "</a>"


@pytest.mark.usefixtures("letters")
def test_show_gives_the_bytes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("show", "m0", "--raw") == 0
    assert capfdbinary.readouterr().out == b"<a>\n<b></a>"


@pytest.mark.usefixtures("letters")
def test_show_reads_what_the_message_says_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = "\ufeff<é>\n<ü></é>".encode("utf-16-le")
    write_letters(DeadLetters(tmp_path / "dead"), Batch("c", 2), [letter(9, raw=raw)])
    assert run("show", "m9") == 0
    assert "<ü></é>" in capsys.readouterr().out


@pytest.mark.usefixtures("letters")
def test_a_letter_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "m77") == 1
    assert "no-letter" in capsys.readouterr().err


def entered() -> dict[str, bytes]:
    """The messages of the inbox, as a job would read them."""
    source = DirectorySource("inbox", "", Path("inbox").absolute(), after="keep")
    inbox = Inbox(source, 1)
    start = inbox.first_offset()
    end = inbox.list_files(start)
    stop = inbox.advance_fully(start, end)
    rows = [
        row
        for slices in inbox.slices(start, stop)
        for batch in read_envelopes(source, slices)
        for row in batch.to_pylist()
    ]
    inbox.close()
    assert all(row["source"] == "inbox" for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["xml"] for row in rows}


@pytest.mark.usefixtures("letters")
def test_a_replayed_message_enters_its_inbox_with_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", "m0") == 0
    assert entered() == {"m0": b"<a>\n<b></a>"}
    capsys.readouterr()
    marks = {row["id"]: row["replayed"] for row in listed(capsys)}
    assert marks.pop("m0") is not None
    assert set(marks.values()) == {None}


def test_a_failed_transformation_names_the_subscription_and_can_be_replayed(
    letters: DeadLetters, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = dict.fromkeys(("position", "line", "column"))
    failed = [
        letter(7, code="output-limit", raw=b"<a/>", subscription=name, **nowhere) for name in ("s1", "s2")
    ]
    write_letters(letters, Batch("c", 2), failed)
    monkeypatch.setenv("COLUMNS", "200")
    assert run("list", "--code", "output-limit") == 0
    out = capsys.readouterr().out
    assert "(for the subscription s1)" in out
    assert "(for the subscription s2)" in out
    # The message, once for both.
    assert run("replay", "m7") == 0
    assert entered() == {"m7": b"<a/>"}


@pytest.mark.usefixtures("letters")
def test_replaying_twice_needs_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", "m0") == 0
    assert run("replay", "m0") == 1
    assert "--again" in capsys.readouterr().err
    assert len(list(Path("inbox").iterdir())) == 1
    assert run("replay", "m0", "--again") == 0
    assert len(list(Path("inbox").iterdir())) == 2


@pytest.mark.usefixtures("letters")
def test_all_replayable_letters_are_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay") == 2
    assert not any(Path("inbox").iterdir())
    capsys.readouterr()
    assert run("replay", "--all") == 1
    out, errors = capsys.readouterr()
    assert out == "2 replayed, 2 not\n"
    assert set(entered()) == {"m0", "m1"}
    assert "--to" in errors
    assert "m3.xml" in errors


@pytest.mark.usefixtures("letters")
def test_letters_of_other_sources_go_to_the_given_inbox(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert run("replay", "--source", "bus", "--to", "other") == 0
    [file] = (tmp_path / "other").iterdir()
    assert pq.read_table(file).column("id").to_pylist() == ["m2"]
    assert run("replay", "m0", "--to", "nowhere") == 1


def test_a_message_that_died_twice_is_replayed_once(
    letters: DeadLetters, capsys: pytest.CaptureFixture[str]
) -> None:
    write_letters(letters, Batch("c", 2), [letter(0, raw=b"<newer")])
    assert run("replay", "m0") == 0
    assert entered() == {"m0": b"<newer"}
    capsys.readouterr()
    assert run("show", "m0", "--raw") == 0


def test_many_letters_keep_their_bytes(letters: DeadLetters) -> None:
    rows = [letter(number, raw=b"<%d" % number) for number in range(100, 150)]
    batches = [pa.RecordBatch.from_pylist(rows[at : at + 7], schema=LETTER) for at in range(0, 50, 7)]
    letters.publish(Batch("d", 0), letters.write(Batch("d", 0), 0, batches))
    found = [one for one in letters.letters(LetterFilter()) if one.id[1:] >= "100" and len(one.id) == 4]
    assert [one.id for one in found] == [f"m{number}" for number in range(149, 99, -1)]
    for order in (found, found[::-1]):
        assert {one.id: raw for one, raw in letters.with_raw(order)} == {
            row["id"]: row["raw"] for row in rows
        }


def test_a_replay_that_cannot_be_marked_is_none(letters: DeadLetters, tmp_path: Path) -> None:
    """No mark can be made where a file is in the way: nothing enters."""
    (tmp_path / "dead" / "replays").write_text("no folder")
    with pytest.raises(SinkError):
        Replays(letters).replay(list(letters.letters(LetterFilter(frozenset(["m0"])))), Path("inbox"))
    assert entered() == {}
