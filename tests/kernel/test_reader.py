"""The reader against expat: messages changed in a few places get the same verdict and the same content."""

import os
from random import Random
from xml.parsers import expat

import pytest

import tamis
from tests.helpers.random_runs import SEED
from tests.helpers.reading import Event, by_expat, by_kernel

MESSAGES = int(os.environ.get("TAMIS_MESSAGES") or 10_000)

LIMITS = tamis.Limits(internal_subset=True, skip_unread_entities=True)
"""As expat without a handler for external entities, which leaves them out."""

STRICTER = {"bad-declaration", "unsupported-encoding", "bad-name"}
"""Where we mean to be stricter: expat takes any version and every encoding that Python has, and does not mind
what follows a colon in the names of a DTD."""

GOOD = [
    b"<a/>",
    b"<a b='1' c=\"2\"><d e='f'>text</d>more<d/></a>",
    b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n<!-- c --><a>x<!-- y --><?p q?>z</a>\n<?p?>",
    b"<a>&lt;&#65;&#x42;&amp;<![CDATA[<&]]>]] ></a>",
    b"<a b=' 1\t2\r\n3&#10;&#9;' c='&quot;'>1\r\n2\r3\n</a>",
    b"<p:a xmlns:p='u' xmlns='v' p:b='1' b='2'><c xmlns=''><p:d/></c><e xml:lang='x'/></p:a>",
    b"<a xmlns:p='u' xmlns:q='v' p:b='' q:b=''><p:a xmlns:p='w'/></a>",
    b"<!DOCTYPE a SYSTEM 'nowhere' ><a>1&unknown;2</a>",
    b"<!DOCTYPE a PUBLIC '-//x' \"nowhere\" [<!ELEMENT a (b|c)*>]><a><b/><c/></a>",
    b"<!DOCTYPE a [<!ENTITY e 'x'><!ENTITY f '&e;<b c=\"&e;\">&#38;e;</b>'>]><a b='&e;'>&f;&e;</a>",
    b"<!DOCTYPE a [<!ATTLIST a b CDATA 'd' c NMTOKENS #IMPLIED d (x|y) 'x'>]><a c=' 1  2 '><a b='e'/></a>",
    b"<!DOCTYPE a [<!ENTITY % p \"<!ENTITY e '1'>\">%p;<!ATTLIST a b ID #IMPLIED>]><a b=' i '>&e;</a>",
    b"<!DOCTYPE a [<!NOTATION n SYSTEM 'n'><!ENTITY u SYSTEM 'u' NDATA n><!ENTITY x SYSTEM 'x'>]><a>&x;</a>",
    b"<!DOCTYPE a [<!ATTLIST a xmlns:p CDATA #FIXED 'u' p:b NMTOKEN 'v'><!-- c --><?p q?>]><a><p:c/></a>",
]

PIECES = [
    *(bytes([byte]) for byte in b"<>&;'\"=/!?[]:% \t\r\n-#x1aA_"),
    *(b"--", b"]]>", b"<![CDATA[", b"<!--", b"-->", b"<?p", b"?>"),
    *(b"&#", b"&#x", b"&#13;", b"&lt;", b"&e;", b"%p;"),
    *(b"<a>", b"</a>", b"<b/>", b" b='2'", b"p:", b" xml:b='1'"),
    *(b" xmlns='w'", b" xmlns:p='w'", b" xmlns:p=''"),
    *(b"<!DOCTYPE a [", b"]>", b"<!ENTITY e 'y'>", b"<!ATTLIST a b CDATA 'z'>", b"<!ELEMENT a ANY>"),
    *(b"SYSTEM 's'", b"\x00", b"\x1f", b"\xc3\xa9", b"\xc3", b"\xef\xbf\xbf", b"\xed\xa0\x80"),
]


def mutate(random: Random, message: bytes) -> bytes:
    """Change a message in one to three places."""
    changed = bytearray(message)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(changed) + 1)
        until = min(len(changed), at + random.randrange(6))
        match random.randrange(5):
            case 0:
                del changed[at:until]
            case 1:
                changed[at:at] = random.choice(PIECES)
            case 2:
                changed[at:until] = random.choice(PIECES)
            case 3:
                to = random.randrange(len(changed) + 1)
                changed[to:to] = changed[at:until]
            case _:
                other = random.choice(GOOD)
                from_ = random.randrange(len(other))
                changed[at:until] = other[from_ : from_ + random.randrange(20)]
    return bytes(changed)


def test_mutated_messages_are_read_as_expat_reads_them(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nmutated messages: seed {SEED}", flush=True)
    random = Random(SEED)
    accepted = refused = 0
    for _ in range(0, MESSAGES, 1000):
        messages = [mutate(random, random.choice(GOOD)) for _ in range(1000)]
        for message, found in zip(messages, by_kernel(messages, LIMITS), strict=True):
            expected: list[Event] | str
            try:
                expected = by_expat(message)
            except (expat.ExpatError, LookupError, ValueError) as error:
                # The latter two: an encoding that Python does not know, or expat cannot use.
                expected = str(error)
            if isinstance(found, str):
                refused += 1
                # Nor does it look into declarations that count no more, after an entity it has not read.
                stricter = found in STRICTER or b"%" in message
                assert isinstance(expected, str) or stricter, (SEED, message, found)
            else:
                accepted += 1
                assert found == expected, (SEED, message)
    assert accepted > MESSAGES // 20
    assert refused > MESSAGES // 20


def test_good_messages_are_good() -> None:
    assert by_kernel(GOOD, LIMITS) == [by_expat(message) for message in GOOD]
