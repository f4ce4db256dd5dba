"""Headers of messages in files: in JSON lines, tables, side-cars and settings; their limits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tamis.model.headers import (
    MAX_BYTES,
    MAX_HEADERS,
    HeaderError,
    merge_headers,
    pack_headers,
    parse_headers,
    unpack_headers,
)
from tamis.settings import load_settings
from tamis.sources.directory import DirectorySource, Inbox, SourceError
from tamis.sources.kafka import KafkaSource
from tests.helpers.inbox_files import drop, drop_table
from tests.sources.test_directory import rows


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    return DirectorySource("feed", "acme", tmp_path / "inbox")


def headers(source: DirectorySource) -> dict[str, dict[str, str]]:
    """Those of all messages that wait; none is refused."""
    given = rows(source)
    assert not [row["reason"] for row in given.values() if row["code"] is not None]
    return {name: unpack_headers(row["headers"]) for name, row in given.items()}


def test_equal_headers_are_equal_texts() -> None:
    assert pack_headers({"b": "é", "a": '"'}) == pack_headers({"a": '"', "b": "é"}) == '{"a":"\\"","b":"é"}'
    assert unpack_headers(pack_headers({"b": "é", "a": '"'})) == {"a": '"', "b": "é"}
    assert (pack_headers(None), pack_headers({}), unpack_headers(None)) == (None, None, {})
    assert merge_headers({"a": "1", "b": "2"}, '{"b":"3"}') == '{"a":"1","b":"3"}'
    assert parse_headers(["a=1", "b==", "a=2"]) == {"a": "2", "b": "="}


@pytest.mark.parametrize(
    "bad",
    [
        [],
        "a=1",
        7,
        {"": "x"},
        {"a b": "x"},
        {"é": "x"},
        {"a\n": "x"},
        {"tamis-id": "x"},
        {"Tamis-Delivery": "x"},
        {"a": 1},
        {"a": None},
        {"a": ["x"]},
        {"a": "x\ny"},
        {"a": "\0"},
        {"a": "\x85"},
        {"a": "\ud800"},
        {"a": "\uffff"},
    ],
)
def test_what_no_sink_can_carry_is_refused(bad: Any) -> None:
    with pytest.raises(HeaderError) as refused:
        pack_headers(bad)
    assert refused.value.code == "bad-header"


def test_headers_are_limited_in_number_and_bytes() -> None:
    pack_headers({f"n{n}": "" for n in range(MAX_HEADERS)})
    pack_headers({"a": "é" * (MAX_BYTES // 2 - 1)})
    for bad, size in (
        ({f"n{n}": "" for n in range(MAX_HEADERS + 1)}, f"{MAX_HEADERS + 1} headers, {MAX_HEADERS}"),
        ({"a": "é" * (MAX_BYTES // 2)}, f"{MAX_BYTES + 1} bytes, {MAX_BYTES}"),
    ):
        with pytest.raises(HeaderError, match=size) as refused:
            pack_headers(bad)
        assert refused.value.code == "header-limit"


def test_lines_and_tables_have_headers(source: DirectorySource) -> None:
    lines = [
        {"id": "a", "xml": "<a/>", "headers": {"priority": "high"}},
        {"id": "b", "xml": "<b/>", "headers": {}},
        {"id": "c", "xml": "<c/>", "headers": None},
    ]
    drop(source.path, "a.jsonl", "\n".join(map(json.dumps, lines)).encode())
    table = {"id": ["d", "e"], "xml": [b"<d/>", b"<e/>"], "headers": ['{"priority": "low"}', None]}
    drop_table(source.path, "b.parquet", table)
    assert headers(source) == {
        "a": {"priority": "high"},
        "b": {},
        "c": {},
        "d": {"priority": "low"},
        "e": {},
    }


def test_a_side_car_is_of_all_messages_of_its_file(source: DirectorySource) -> None:
    """Those of the message count before those of the file, and these before those of the folder."""
    source = replace(source, headers={"folder": "f", "both": "folder"})
    drop(source.path, "a.xml.headers", b'{"both": "side-car", "own": "side-car"}')
    drop(source.path, "a.xml", b"<a/>")
    drop(source.path, "b.jsonl.headers", b'{"own": "side-car"}')
    drop(source.path, "b.jsonl", b'{"id": "b", "xml": "<b/>", "headers": {"own": "message"}}')
    drop(source.path, "c.xml", b"<c/>")
    assert headers(source) == {
        "a.xml": {"folder": "f", "both": "side-car", "own": "side-car"},
        "b": {"folder": "f", "both": "folder", "own": "message"},
        "c.xml": {"folder": "f", "both": "folder"},
    }


@pytest.mark.parametrize("after", ["move", "delete", "keep"])
def test_a_side_car_goes_where_its_file_goes(source: DirectorySource, after: Any) -> None:
    source = replace(source, after=after)
    drop(source.path, "a.xml.headers", b'{"own": "side-car"}')
    drop(source.path, "a.xml", b"<a/>")
    inbox = Inbox(source, tasks=1)
    start = inbox.first_offset()
    end = inbox.advance(start, inbox.list_files(start))
    inbox.commit(end)
    names = {"a.xml", "a.xml.headers"}
    done = {path.name for path in source.done.iterdir()} if source.done.exists() else set()
    assert done == (names if after == "move" else set())
    assert {path.name for path in source.path.iterdir()} == (names if after == "keep" else set())
    inbox.close()


def test_bad_headers_refuse_their_messages_only(source: DirectorySource) -> None:
    lines = [
        {"id": "a", "xml": "<a/>", "headers": {"a b": "1"}},
        {"id": "b", "xml": "<b/>", "headers": {"a": "x" * MAX_BYTES}},
        {"id": "c", "xml": "<c/>", "headers": {"a": "1"}},
    ]
    drop(source.path, "a.jsonl", "\n".join(map(json.dumps, lines)).encode())
    for name, side_car in {
        "json": b"{",
        "list": b"[]",
        "bytes": b'{"a": "\xff"}',
        "deep": b"[" * 40_000,
        "long": b"{" + b" " * 200_000 + b"}",
    }.items():
        drop(source.path, f"{name}.xml.headers", side_car)
        drop(source.path, f"{name}.xml", b"<a/>")
    many = json.dumps({f"n{n}": "" for n in range(MAX_HEADERS)}).encode()
    drop(source.path, "many.jsonl.headers", many)
    drop(source.path, "many.jsonl", b'{"id": "m", "xml": "<m/>", "headers": {"more": ""}}')
    drop_table(source.path, "t.parquet", {"id": ["t"], "xml": ["<t/>"], "headers": ["[1"]})
    drop_table(source.path, "u.parquet", {"id": ["u"], "xml": ["<u/>"], "headers": [7]})
    given = rows(source)
    codes = {name: row["code"] for name, row in given.items()}
    assert codes.pop("c") is None
    limits = {name for name, code in codes.items() if code == "header-limit"}
    assert limits == {"a.jsonl#2", "long.xml", "m"}
    others = {"a.jsonl#1", "json.xml", "list.xml", "bytes.xml", "deep.xml", "t.parquet#1", "u.parquet#1"}
    assert {name for name, code in codes.items() if code == "bad-header"} == others == codes.keys() - limits
    assert given["list.xml"]["xml"] == b"<a/>"
    assert all(row["reason"] and not row["headers"] for row in given.values() if row["code"])


def test_headers_in_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "tamis.toml"
    file.write_text(
        '[[source]]\nname = "a"\npath = "a"\nheaders = { priority = "high" }\n'
        '[[source]]\nname = "b"\nkind = "kafka"\nservers = "x"\ntopics = "t"\nheaders = ["priority"]\n'
    )
    directory, kafka = load_settings(file, environment={}).sources
    assert isinstance(directory, DirectorySource)
    assert directory.headers == {"priority": "high"}
    assert DirectorySource.from_json(json.loads(json.dumps(directory.to_json()))) == directory
    assert isinstance(kafka, KafkaSource)
    assert kafka.headers == ("priority",)
    file.write_text('[[source]]\nname = "a"\npath = "a"\nheaders = { "a b" = "high" }\n')
    with pytest.raises(SourceError, match="source a: 'a b' cannot be the name of a header"):
        load_settings(file, environment={})
