"""Files split at a record element: independent of the chunk size, equal to lxml's subtrees, robust."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from lxml import etree

from tamis import Limits, read_batch
from tamis.sources.bytestream import ByteStream
from tamis.sources.raw_message import RawMessage
from tamis.sources.record_splitter import RecordSplitter, State
from tests.helpers.random_documents import document, serialise


def cuts(
    path: Path, content: bytes, element: str, *, limits: Limits | None = None, chunk: int = 1 << 18
) -> list[RawMessage]:
    path.write_bytes(content)
    with ByteStream(path) as stream:
        return list(RecordSplitter(stream, element, limits or Limits(), chunk=chunk).messages())


def canonical(xml: bytes) -> bytes:
    try:
        return etree.tostring(etree.fromstring(xml), method="c14n", exclusive=True, with_comments=True)
    except (etree.XMLSyntaxError, etree.C14NError):
        # Damage can make a namespace of what lxml does not take for a URI; then the bytes must do.
        return xml


def messages(given: list[RawMessage]) -> list[bytes]:
    """The good cuts in canonical form: what the reader of messages would not refuse."""
    return [canonical(cut.xml) for cut in given if cut.code is None and not refused(cut)]


def refused(cut: RawMessage) -> bool:
    return read_batch([cut.xml]).errors.num_rows > 0


def outermost(element: etree._Element, is_record: str, *, as_written: bool) -> Iterator[etree._Element]:
    """The record elements of a tree by lxml, not looking into them."""
    written = f"{element.prefix}:" if element.prefix else ""
    local = etree.QName(element).localname
    if (
        f"{written}{local}" if as_written else f"{{{etree.QName(element).namespace or ''}}}{local}"
    ) == is_record:
        yield element
        return
    for child in element.iterchildren(tag=etree.Element):
        yield from outermost(child, is_record, as_written=as_written)


@pytest.mark.parametrize("seed", range(100))
def test_records_are_the_subtrees_of_the_document(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    content = serialise(random, document(random))
    root = etree.fromstring(content)
    chosen = random.choice(list(root.iter(tag=etree.Element)))
    as_written = random.random() < 0.5
    name = etree.QName(chosen)
    prefix = f"{chosen.prefix}:" if chosen.prefix else ""
    element = f"{prefix}{name.localname}" if as_written else f"{{{name.namespace or ''}}}{name.localname}"
    expected = list(outermost(root, element, as_written=as_written))
    assert expected

    given = cuts(tmp_path / "file.xml", content, element)
    assert [cut.code for cut in given] == [None] * len(expected)
    assert [canonical(cut.xml) for cut in given] == [
        canonical(etree.tostring(subtree, with_tail=False)) for subtree in expected
    ]
    # The declarations in force are all there, used or not: content may hold prefixes too.
    assert [etree.fromstring(cut.xml).nsmap for cut in given] == [subtree.nsmap for subtree in expected]
    assert [cut.number for cut in given] == list(range(1, len(expected) + 1))
    for chunk in (1, 2, 3, 7, 64):
        assert cuts(tmp_path / "file.xml", content, element, chunk=chunk) == given


def records_file(random: Random, count: int) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    """A file of groups of records, and where each record starts and ends, in canonical form."""
    content = bytearray(b'<?xml version="1.0"?>\n<!DOCTYPE all>\n<all xmlns:q="urn:q" xmlns="urn:all">\n')
    places = []
    for number in range(count):
        if number % 5 == 0:
            content += (
                b'</group>\n<group xmlns:p="urn:%d">' % number if number else b'<group xmlns:p="urn:0">'
            )
        start = len(content)
        inner = serialise(random, document(random))
        body = etree.tostring(etree.fromstring(inner), with_tail=False)
        content += (
            b'<p:rec n="%d"><p:x/>' % number + body + b"<q:y/><![CDATA[<p:rec>]]><!-- </p:rec> --></p:rec>"
        )
        places.append((start, len(content)))
        content += random.choice((b"", b"\n", b"<!-- between -->", b"text"))
    content += b"</group></all>"
    whole = etree.fromstring(bytes(content))
    trees = [tree for tree in whole.iter(tag=etree.Element) if tree.prefix == "p" and tree.get("n")]
    forms = [canonical(etree.tostring(tree, with_tail=False)) for tree in trees]
    return bytes(content), [(*place, form) for place, form in zip(places, forms, strict=True)]


@pytest.mark.parametrize("seed", range(200))
def test_damage_loses_no_record_outside_it(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    content, places = records_file(random, 12)
    start, end, _ = random.choice(places)
    at = random.randint(start, end - 1)
    size = random.choice((1, 1, 2, 5, 20, 200))
    # Damage only inside records: the elements around them declare their namespaces.
    size = min(size, end - at)
    damage = random.choice(
        (
            b"",
            bytes(random.choice(b"<>&\"'/!-ax\x00\xff") for _ in range(size)),
            b"<p:rec>",
            b"<!--",
            b"<![CDATA[",
        )
    )
    damaged = content[:at] + damage + content[at + size :]

    given = cuts(tmp_path / "file.xml", damaged, "p:rec")
    found = messages(given)
    untouched = [form for first, last, form in places if last <= at or first >= at + size]
    try:
        whole = etree.fromstring(damaged)
    except etree.XMLSyntaxError:
        assert [form for form in found if form in set(untouched)] == untouched
        assert len(found) <= len(places) + 1
    else:
        subtrees = outermost(whole, "p:rec", as_written=True)
        assert found == [canonical(etree.tostring(tree, with_tail=False)) for tree in subtrees]
    assert all(cut.reason for cut in given if cut.code)
    assert cuts(tmp_path / "file.xml", damaged, "p:rec", chunk=random.choice((1, 5, 100))) == given


@pytest.mark.parametrize("seed", range(60))
def test_cutting_goes_on_at_any_state(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    content, places = records_file(random, 8)
    if seed % 2:
        start, end, _ = random.choice(places)
        at = random.randint(start, end - 1)
        content = content[:at] + content[at + random.randint(1, 30) :]
    encoding = random.choice(("utf-8", "utf-16", "iso-8859-1", "gb18030", "euc-kr"))
    if encoding != "utf-8":
        text = content.decode().replace('version="1.0"', f'version="1.0" encoding="{encoding}"')
        content = text.encode(encoding, "xmlcharrefreplace")
    path = tmp_path / random.choice(("file.xml", "file.xml.gz"))
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    with ByteStream(path) as stream:
        expected = list(RecordSplitter(stream, "p:rec", Limits()).messages())
    given: list[RawMessage] = []
    state = State()
    while True:
        with ByteStream(path, state.offset) as stream:
            cutter = RecordSplitter(stream, "p:rec", Limits(), state)
            cut = next(cutter.messages(), None)
            if cut is None:
                break
            given.append(cut)
            state = State.from_json(json.loads(json.dumps(cutter.state.to_json())))
    assert given == expected


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252", "gb18030"]
)
def test_encodings(encoding: str, tmp_path: Path) -> None:
    declared = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    text = f'<?xml version="1.0" encoding="{declared}"?><all é="ü"><rec>é</rec><rec é="ß"/></all>'
    for chunk in (1, 3, 1000):
        given = cuts(tmp_path / "file.xml", text.encode(encoding), "rec", chunk=chunk)
        assert [cut.xml.decode() for cut in given] == ["<rec>é</rec>", '<rec é="ß"/>']
        assert [cut.code for cut in given] == [None, None]
    wide = 2 if "16" in encoding else 1
    mark = {"utf-8-sig": 3, "utf-16": 2}.get(encoding, 0)
    two = 2 if declared in ("utf-8", "gb18030") else 1
    prolog = len(text[: text.index("<rec>")])
    assert given[0].offset == mark + prolog * wide + 2 * (two - 1)


def test_a_checkpoint_of_an_earlier_version_has_names_of_python() -> None:
    stored = State(encoding="utf-16-le").to_json()
    assert State.from_json(stored).encoding == "utf-16le"


def test_bytes_outside_of_the_encoding_are_refused_by_the_reader(tmp_path: Path) -> None:
    content = "<a><rec>1</rec><rec>x</rec><rec>3</rec></a>".encode("utf-16").replace(b"x\x00", b"\x00\xd8")
    given = cuts(tmp_path / "file.xml", content, "rec")
    assert [refused(cut) for cut in given] == [False, True, False]
    for encoding, bad in (("us-ascii", b"\xc3\xa9"), ("windows-1252", b"\x81"), ("euc-jp", b"\xff")):
        head = b'<?xml version="1.0" encoding="%s"?>' % encoding.encode()
        given = cuts(
            tmp_path / "file.xml", head + b"<a><rec>1</rec><rec>" + bad + b"</rec><rec>3</rec></a>", "rec"
        )
        assert [refused(cut) for cut in given] == [False, True, False], encoding


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"<a><rec>1</rec><rec>2", [None, "truncated-record"]),
        (b"<a><rec>1</rec>", [None, "truncated-file"]),
        (b"<a><rec>1</rec><rec>", [None, "truncated-record"]),
        (b'<a><rec a="1><rec>2</rec></a>', ["bad-tag", None]),
        (b"<a><rec>1</rec><<< b <rec>2</rec></a>", [None, "bad-markup", None]),
        (b"<a><rec>1</rec></b><rec>2</rec></a>", [None, "bad-nesting", None]),
        (b"<a>\n  <b/><!-- <rec/> --><?x <rec/> ?><![CDATA[<rec/>]]></a>", ["no-record"]),
        (b"", ["no-record"]),
        (b"junk <a><rec/></a> junk", ["stray-text", None, "stray-text"]),
        (b'<!DOCTYPE a [<!ENTITY e "<rec>"><!-- ]> -->]><a><rec/></a>', [None]),
        (b"<rec/><rec/>", [None, None]),
        (b"<a><rec>" + b"x" * 5000 + b"</rec><rec>2</rec></a>", ["document-limit", None]),
        (b"<rec>" * 300 + b"</rec>" * 300, ["depth-limit"] * 44 + [None, "bad-nesting"]),
        (b"<a>" * 300 + b"<rec/>" + b"</a>" * 300, ["depth-limit", None, "bad-nesting"]),
        (b"\xff\xfe\x00\x00<\x00\x00\x00", ["unsupported-encoding"]),
        (b'<?xml version="1.0" encoding="iso-2022-jp"?><rec/>', ["unsupported-encoding"]),
        (b'<?xml version="1.0" encoding="iso-2022-kr"?><rec/>', ["unsupported-encoding"]),
        (b"<a><rec>1</rec><!-- <rec>2</rec></a>", [None, "bad-markup", None]),
        (b"<a><rec>1</rec><![CDATA[<rec>2</rec></a>", [None, "bad-markup", None]),
    ],
)  # fmt: skip
def test_unsplittable_regions_are_set_aside(
    content: bytes, expected: list[str | None], tmp_path: Path
) -> None:
    limits = Limits(document=4000)
    given = cuts(tmp_path / "file.xml", content, "rec", limits=limits)
    assert [cut.code for cut in given] == expected
    for chunk in (1, 2, 5):
        assert cuts(tmp_path / "file.xml", content, "rec", limits=limits, chunk=chunk) == given


def test_a_record_with_a_lost_end_does_not_swallow_the_next_ones(tmp_path: Path) -> None:
    content = (
        b'<a xmlns:p="u"><rec n="1"><b xmlns:p="v"><c><rec n="2"><p:x/></rec><rec n="3"><p:x/></rec></a>'
    )
    first, *rest = cuts(tmp_path / "file.xml", content, "rec")
    assert first.code == "truncated-record"
    assert [cut.xml for cut in rest] == [
        b'<rec xmlns:p="u" n="2"><p:x/></rec>',
        b'<rec xmlns:p="u" n="3"><p:x/></rec>',
    ]


def test_a_lost_end_before_another_group(tmp_path: Path) -> None:
    content = b'<a><g xmlns="u"><rec n="1"></g><g xmlns="v"><rec n="2"/></g></a>'
    first, second = cuts(tmp_path / "file.xml", content, "rec")
    assert first.code == "truncated-record"
    assert second.xml == b'<rec xmlns="v" n="2"/>'


def test_openings_without_an_end_cost_no_more_than_one(tmp_path: Path) -> None:
    content = b"<a>" + b"<rec><![CDATA[" * 20_000 + b"</a>"
    given = cuts(tmp_path / "file.xml", content, "rec", limits=Limits(document=100_000_000, depth=10))
    assert len(given) == 20_000


def test_broken_gzip_and_bombs(tmp_path: Path) -> None:
    content = b"<a>" + b"".join(b"<rec>%d</rec>" % n for n in range(10_000)) + b"</a>"
    packed = gzip.compress(content)
    given = cuts(tmp_path / "cut.xml.gz", packed[: len(packed) // 2], "rec")
    assert given[-1].code == "bad-gzip"
    assert sum(cut.code is None for cut in given) > 3000
    assert [cut.xml for cut in given if cut.code is None][7] == b"<rec>7</rec>"

    bomb = gzip.compress(b"<a>" + b" " * (64 << 20), 9)
    given = cuts(tmp_path / "bomb.xml.gz", bomb, "rec")
    assert [cut.code for cut in given] == ["gzip-limit"]


_BOUNDED = """
import resource, sys
from pathlib import Path
from tamis import Limits
from tamis.sources.bytestream import ByteStream
from tamis.sources.record_splitter import RecordSplitter
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
with ByteStream(Path(sys.argv[1])) as stream:
    codes = [cut.code for cut in RecordSplitter(stream, "rec", Limits()).messages()]
print(len(codes), sum(code is not None for code in codes))
"""


def bounded(path: Path) -> list[int]:
    """Cut a file in a process that may take 64 MB more than it starts with: the cuts, and those set aside."""
    run = subprocess.run([sys.executable, "-c", _BOUNDED, path], capture_output=True, text=True, check=True)
    return [int(number) for number in run.stdout.split()]


def write_big(path: Path, size: int) -> int:
    """A file of so many bytes, with one record of 20 MB in its middle; the number of good records."""
    random = Random(1)
    body = b"".join(b"<b n='%d'>%s</b>" % (n, random.randbytes(900).hex().encode()) for n in range(40))
    record = b"<rec>" + body + b"</rec>\n"
    count = size // len(record)
    with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
        file.write(b"<all xmlns='urn:x'>")
        for number in range(count):
            if number == count // 2:
                file.write(b"<rec>" + b" " * (20 << 20) + b"</rec>")
            file.write(record)
        file.write(b"</all>")
    return count


def test_a_big_file_costs_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.xml"
    count = write_big(path, 200 << 20)
    assert bounded(path) == [count + 1, 1]


@pytest.mark.soak
def test_a_very_big_gzip_file_costs_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.xml.gz"
    count = write_big(path, 5 << 30)
    assert bounded(path) == [count + 1, 1]
