"""Hostile and broken messages as data: kind, function that builds it, expected error code."""

from collections.abc import Callable
from dataclasses import dataclass

from tamis import Limits

SUBSET = Limits(internal_subset=True)
SHORT_TEXTS = Limits(text=1 << 20)


def nested_entities(levels: int, fan: int) -> bytes:
    """Billion laughs."""
    lines = ['<!ENTITY e0 "lol">']
    lines += [f'<!ENTITY e{n} "{f"&e{n - 1};" * fan}">' for n in range(1, levels)]
    return f"<!DOCTYPE a [{''.join(lines)}]><a>&e{levels - 1};</a>".encode()


def nested_parameter_entities(levels: int, fan: int) -> bytes:
    lines = ['<!ENTITY % p0 " ">']
    lines += [f'<!ENTITY % p{n} "{f"&#37;p{n - 1};" * fan}">' for n in range(1, levels)]
    return f"<!DOCTYPE a [{''.join(lines)} %p{levels - 1};]><a/>".encode()


@dataclass(frozen=True)
class Attack:
    """A broken message, and the code that it is refused with."""

    code: str
    limits: Limits
    """The limits for a message that is refused with this code."""
    make: Callable[[], bytes]


MESSAGES: dict[str, Attack] = {
    # entities
    "subset refused by default": Attack("internal-subset", Limits(), lambda: nested_entities(10, 10)),
    "billion laughs": Attack("expansion-limit", SUBSET, lambda: nested_entities(10, 10)),
    "billion laughs in an attribute": Attack(
        "expansion-limit", SUBSET, lambda: nested_entities(10, 10).replace(b"<a>", b"<a x='&e9;'>")),
    "quadratic blow-up": Attack(
        "expansion-limit", SUBSET,
        lambda: b'<!DOCTYPE a [<!ENTITY e "' + b"x" * 50_000 + b'">]><a>' + b"&e;" * 50_000 + b"</a>"),
    "recursive entity": Attack(
        "entity-recursion", SUBSET, lambda: b'<!DOCTYPE a [<!ENTITY e "&f;"><!ENTITY f "&e;">]><a>&e;</a>'),
    "entity that contains itself": Attack(
        "entity-recursion", SUBSET, lambda: b'<!DOCTYPE a [<!ENTITY e "<b>&e;</b>">]><a>&e;</a>'),
    "nested parameter entities": Attack("expansion-limit", SUBSET, lambda: nested_parameter_entities(12, 12)),
    "recursive parameter entity": Attack(
        "entity-recursion", SUBSET, lambda: b'<!DOCTYPE a [<!ENTITY % p "&#37;p;"> %p;]><a/>'),
    "external entity": Attack(
        "unread-entity", SUBSET,
        lambda: b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>'),
    "external entity in an attribute": Attack(
        "external-entity", SUBSET,
        lambda: b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a x="&e;"/>'),
    "undeclared entity": Attack("undeclared-entity", Limits(), lambda: b"<a>&nbsp;</a>"),
    # size
    "huge document": Attack("document-limit", Limits(), lambda: b"<a>" + b"<b/>" * (3 << 20) + b"</a>"),
    "deep nesting": Attack("depth-limit", Limits(), lambda: b"<a>" * 100_000 + b"</a>" * 100_000),
    "many attributes": Attack(
        "attributes-limit", Limits(),
        lambda: b"<a " + b" ".join(b"a%d='1'" % n for n in range(100_000)) + b"/>"),
    "many namespace declarations": Attack(
        "namespaces-limit", Limits(),
        lambda: b"<a " + b" ".join(b"xmlns:a%d='u'" % n for n in range(100_000)) + b"/>"),
    "huge element name": Attack("name-limit", Limits(), lambda: b"<" + b"a" * 1_000_000 + b"/>"),
    "huge attribute name": Attack("name-limit", Limits(), lambda: b"<a " + b"a" * 1_000_000 + b"='1'/>"),
    "huge text": Attack("text-limit", SHORT_TEXTS, lambda: b"<a>" + b"x" * (2 << 20) + b"</a>"),
    "huge attribute value": Attack("text-limit", SHORT_TEXTS, lambda: b"<a x='" + b"x" * (2 << 20) + b"'/>"),
    "huge comment": Attack("text-limit", SHORT_TEXTS, lambda: b"<a><!--" + b"x" * (2 << 20) + b"--></a>"),
    "huge instruction": Attack("text-limit", SHORT_TEXTS, lambda: b"<a><?x " + b"x" * (2 << 20) + b"?></a>"),
    "huge CDATA section": Attack(
        "text-limit", SHORT_TEXTS, lambda: b"<a><![CDATA[" + b"x" * (2 << 20) + b"]]></a>"),
    "text in a million references": Attack(
        "text-limit", SHORT_TEXTS, lambda: b"<a>" + b"&#120;" * 1_500_000 + b"</a>"),
    # form
    "nothing": Attack("no-root", Limits(), lambda: b""),
    "truncated in a tag": Attack("truncated", Limits(), lambda: b"<a><b x='1'"),
    "truncated in content": Attack("unclosed-element", Limits(), lambda: b"<a><b>text"),
    "two roots": Attack("two-roots", Limits(), lambda: b"<a/><b/>"),
    "text after the root": Attack("text-outside-root", Limits(), lambda: b"<a/>text"),
    "text before the root": Attack("text-outside-root", Limits(), lambda: b"text<a/>"),
    "wrong end tag": Attack("mismatched-tag", Limits(), lambda: b"<a><b></a></b>"),
    "-- in a comment": Attack("bad-comment", Limits(), lambda: b"<a><!-- a -- b --></a>"),
    "]]> in text": Attack("section-end", Limits(), lambda: b"<a>]]></a>"),
    "illegal character": Attack("illegal-character", Limits(), lambda: b"<a>\x01</a>"),
    "illegal reference": Attack("bad-reference", Limits(), lambda: b"<a>&#0;</a>"),
    "reference to a surrogate": Attack("bad-reference", Limits(), lambda: b"<a>&#xD800;</a>"),
    "bad UTF-8": Attack("bad-utf8", Limits(), lambda: b"<a>\xff\xfe</a>"),
    "overlong UTF-8": Attack("bad-utf8", Limits(), lambda: b"<a>\xc0\xbc</a>"),
    "UTF-16 without its mark": Attack(
        "encoding-mismatch", Limits(), lambda: b"<?xml version='1.0' encoding='utf-16'?><a/>"),
    "odd UTF-16": Attack("bad-utf16", Limits(), lambda: "<a/>".encode("utf-16") + b"\x00"),
    "mark that disagrees": Attack(
        "encoding-mismatch", Limits(), lambda: "<?xml version='1.0' encoding='utf-8'?><a/>".encode("utf-16")),
    "unknown encoding": Attack(
        "unsupported-encoding", Limits(), lambda: b"<?xml version='1.0' encoding='EBCDIC-FR'?><a/>"),
    "gzip": Attack("bad-utf8", Limits(), lambda: b"\x1f\x8b\x08\x00" + b"\x00" * 1000),
    "unbound prefix": Attack("unbound-prefix", Limits(), lambda: b"<p:a/>"),
    "unbound attribute prefix": Attack("unbound-prefix", Limits(), lambda: b"<a p:x='1'/>"),
    "rebound xml": Attack("reserved-prefix", Limits(), lambda: b"<a xmlns:xml='urn:x'/>"),
    "declared xmlns": Attack("reserved-prefix", Limits(), lambda: b"<a xmlns:xmlns='urn:x'/>"),
    "duplicate attribute": Attack("duplicate-attribute", Limits(), lambda: b"<a x='1' x='2'/>"),
    "duplicate attribute by namespace": Attack(
        "duplicate-attribute", Limits(), lambda: b"<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>"),
}  # fmt: skip

HARMLESS: tuple[bytes, ...] = (
    b'<!DOCTYPE good SYSTEM "http://127.0.0.1:9/never.dtd"><good/>',
    b'<!DOCTYPE good [<!ENTITY e SYSTEM "file:///etc/hostname">]><good/>',
    "<good>é</good>".encode("utf-16"),
    b"\xef\xbb\xbf<good/>",
    b"<good>" + b"<a>" * 255 + b"</a>" * 255 + b"</good>",
)
"""Messages that only look like it, where an internal subset is allowed: nothing outside is fetched."""
