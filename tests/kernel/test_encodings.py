"""Messages in other encodings than UTF-8, against libxml2, expat and Python's codecs."""

import codecs
import unicodedata
from contextlib import suppress
from random import Random
from typing import Any
from xml.parsers import expat

import pyarrow as pa
import pytest
from lxml import etree

import tamis
from tests.helpers.random_runs import SEED
from tests.helpers.reading import by_expat, by_kernel

ONE_BYTE = [
    *(f"iso-8859-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
    *(f"windows-{number}" for number in (1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)),
    *("us-ascii", "koi8-r", "koi8-u", "ibm866", "macintosh"),
]

SEVERAL_BYTES = ["gb18030", "gbk", "big5", "euc-jp", "shift_jis", "euc-kr", "iso-2022-jp", "utf-16"]

DIFFERENT = {
    # Bytes that are other characters to libxml2 than in the tables of the WHATWG Encoding Standard.
    "koi8-u": {0xAE, 0xBE},
    "macintosh": {0xBD, 0xDB, 0xF0},
}


def message(encoding: str, content: bytes) -> bytes:
    return b"<?xml version='1.0' encoding='%s'?>\n<a>%s</a>" % (encoding.encode(), content)


def found(xml: bytes) -> str | None:
    """The text of the root element, as the engine reads it; None if it is refused."""
    read = tamis.read_batch([xml])
    if read.errors.num_rows:
        return None
    values = zip(read.nodes["kind"].to_pylist(), read.nodes["value"].to_pylist(), strict=True)
    return "".join(str(value) for kind, value in values if kind == "text")


def by_libxml2(xml: bytes) -> str | None:
    try:
        return etree.fromstring(xml, etree.XMLParser(huge_tree=True)).text or ""
    except etree.XMLSyntaxError:
        return None


def accepted(label: str) -> bool:
    return found(message(label, b"x")) == "x"


@pytest.mark.parametrize("encoding", ONE_BYTE)
def test_every_byte_is_what_it_is_to_libxml2(encoding: str) -> None:
    different = {
        byte
        for byte in range(0x80, 0x100)
        if found(message(encoding, bytes([byte]))) != by_libxml2(message(encoding, bytes([byte])))
    }
    assert different == DIFFERENT.get(encoding, set())


def encoded(encoding: str, text: str) -> bytes:
    return f"<?xml version='1.0' encoding='{encoding}'?><a>{text}</a>".encode(encoding)


def shared_characters(random: Random, encoding: str) -> list[str]:
    """Some characters that Python, libxml2 and the engine read alike: their tables differ in a few."""
    known = []
    for _ in range(20_000):
        character = chr(random.choice((random.randrange(0x20, 0x500), random.randrange(0x20, 0x11000))))
        with suppress(UnicodeEncodeError):
            xml = encoded(encoding, character)
            # libxml2 composes the accents of windows-1258 with the letters before them.
            is_plain = character not in "<&>" and not unicodedata.combining(character)
            if is_plain and found(xml) == by_libxml2(xml) == character:
                known.append(character)
        if len(known) == 200:
            break
    return known


@pytest.mark.parametrize("encoding", [*ONE_BYTE, *SEVERAL_BYTES])
def test_random_documents_are_read_as_libxml2_reads_them(encoding: str) -> None:
    random = Random(SEED)
    known = shared_characters(random, encoding)
    assert len(known) == 200
    for _ in range(50):
        text = "".join(random.choices(known, k=random.randrange(200)))
        xml = encoded(encoding, text)
        assert found(xml) == by_libxml2(xml) == text, (SEED, encoding)


@pytest.mark.parametrize("encoding", ["us-ascii", "iso-8859-1", "koi8-r", "iso-8859-15", "windows-1251"])
def test_random_documents_are_read_as_expat_reads_them(encoding: str) -> None:
    """Also with random bytes: both refuse the same."""
    random = Random(SEED)
    for _ in range(200):
        content = bytearray(random.choice(b"<b/>x &amp;\n") for _ in range(random.randrange(20)))
        content += random.randbytes(random.randrange(3))
        xml = message(encoding, bytes(content))
        try:
            expected = by_expat(xml)
        except expat.ExpatError:
            assert isinstance(by_kernel([xml], tamis.Limits())[0], str), (SEED, xml)
        else:
            assert by_kernel([xml], tamis.Limits()) == [expected], (SEED, xml)


def test_labels() -> None:
    for label in ("UTF8", "Latin1", "l1", "CP1252", "US-ASCII", "ascii", "sjis", "x-sjis", "ISO-8859-8-I"):
        assert accepted(label), label
    for label in ("utf-7", "cp037", "ebcdic-cp-us", "utf-32", "iso-2022-kr", "hz-gb-2312", "nonsense"):
        [error] = tamis.read_batch([message(label, b"x")]).errors.to_pylist()
        assert (error["code"], error["line"]) == ("unsupported-encoding", 1), label
    for codec in ("iso8859-15", "koi8-r", "cp1251", "gb18030"):
        assert accepted(codecs.lookup(codec).name), codec


def test_filters_and_transformations_see_characters() -> None:
    index = tamis.Index()
    index.insert(1, "//a[. = 'é€']")
    index.insert(2, "for $a in /a return <b>{string($a)}</b>")
    for encoding in ("windows-1252", "iso-8859-15", "utf-16", "utf-8"):
        xml = message(encoding, b"").decode().replace("<a>", "<a>é€").encode(encoding)
        assert index.match(xml) == [1, 2]
        outputs = {output.target: output.payload for output in index.transform(xml)}
        # A filter delivers the message as it came, a transformation makes UTF-8.
        assert outputs == {1: xml, 2: "<b>é€</b>".encode()}


def test_strings_are_utf8_even_if_they_declare_another_encoding() -> None:
    text = message("iso-8859-1", "é".encode()).decode()
    arrays = [pa.array([text], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    mixed: list[Any] = [[text], [text, b"<a/>"], *arrays]
    for given in mixed:
        errors = tamis.read_batch(given).errors.to_pylist()
        assert [error["code"] for error in errors] == ["encoding-mismatch"]
    assert tamis.read_batch([text.encode("iso-8859-1")]).errors.num_rows == 0
    for same in (message("iso-8859-1", b"e"), message("utf8", "é".encode()), "\ufeff<a/>".encode()):
        assert tamis.read_batch([same.decode()]).errors.num_rows == 0
        assert tamis.read_batch(pa.array([same.decode()])).errors.num_rows == 0


def test_positions_count_characters() -> None:
    read = tamis.read_batch(
        [message("iso-8859-1", b"\n\xe9\xe9</b>"), message("windows-1252", b"\n\xe9\x90")]
    )
    places = [(error["code"], error["line"], error["column"]) for error in read.errors.to_pylist()]
    assert places == [("mismatched-tag", 3, 3), ("bad-encoding", 3, 2)]
