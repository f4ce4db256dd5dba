"""`tamis.read_dtd`: what a DTD says, as the generators see it."""

from pathlib import Path

import pytest

import tamis

NEWS = b"""<?xml version="1.0" encoding="UTF-8"?>
<!ENTITY % text "#PCDATA | em">
<!ENTITY % common "id ID #IMPLIED">
<!ELEMENT story (title, by?, (p | list)+)>
<!ATTLIST story %common; kind (news|sport) "news" version CDATA #FIXED "2">
<!ELEMENT title (%text;)*> <!ELEMENT em (#PCDATA)> <!ELEMENT by EMPTY> <!ELEMENT p (%text;)*>
<!ELEMENT list ANY>
"""


def test_elements_have_content_children_and_attributes() -> None:
    dtd = tamis.read_dtd(NEWS)
    assert list(dtd.elements) == ["story", "title", "em", "by", "p", "list"]
    # What `list` may contain, being ANY, says nothing about where documents begin.
    assert dtd.roots == ("story",)
    story = dtd.elements["story"]
    assert story.content == "children"
    assert {name: (count.min, count.max) for name, count in story.children.items()} == {
        "title": (1, 1),
        "by": (0, 1),
        "p": (0, None),
        "list": (0, None),
    }
    assert story.model is not None
    assert [part.kind for part in story.model.parts] == ["name", "name", "choice"]
    assert story.attributes["id"].type == "ID"
    assert story.attributes["kind"].values == ("news", "sport")
    assert (story.attributes["kind"].default, story.attributes["kind"].value) == ("value", "news")
    assert (story.attributes["version"].default, story.attributes["version"].value) == ("fixed", "2")
    assert dtd.elements["title"].has_text
    assert not dtd.elements["by"].has_text
    assert len(dtd.elements["list"].children) == 6


def test_external_parameter_entities_are_asked_for() -> None:
    text = b'<!ENTITY % more SYSTEM "more.mod"> %more;'
    asked: list[str] = []

    def resolve(system: str) -> bytes:
        asked.append(system)
        return b"<!ELEMENT a EMPTY>"

    assert list(tamis.read_dtd(text, resolve).elements) == ["a"]
    assert asked == ["more.mod"]
    with pytest.raises(tamis.ReadError, match=r"more\.mod") as caught:
        tamis.read_dtd(text)
    assert caught.value.code == "unresolved-entity"


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        (b"<!ELEMENT a (b,c|d)>", "bad-declaration", 1, 17),
        (b"\n<!ELEMENT a EMPTY", "unclosed-declaration", 2, 18),
        (b"<!ENTITY % p '&#37;p;'>\n%p;", "entity-recursion", 2, 1),
        (b"<!ENTITY e 'a & b'>", "bad-reference", 1, 12),
        (b"<!ELEMENT a (\xff)>", "bad-utf8", 1, 14),
    ],
)
def test_errors_have_a_code_and_a_place(text: bytes, code: str, line: int, column: int) -> None:
    with pytest.raises(tamis.ReadError) as caught:
        tamis.read_dtd(text)
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, line, column)


def test_entities_that_grow_without_end_are_refused() -> None:
    levels = [f"<!ENTITY % a{level} '{f'&#37;a{level - 1};' * 10}'>" for level in range(1, 20)]
    text = "".join(["<!ENTITY % a0 ''>", *levels, "%a19;"]).encode()
    with pytest.raises(tamis.ReadError) as caught:
        tamis.read_dtd(text)
    assert caught.value.code == "expansion-limit"
    assert caught.value.limit is not None
    assert caught.value.value is not None
    assert caught.value.value > caught.value.limit


@pytest.mark.data
def test_the_news_industry_text_format_is_read(data: Path) -> None:
    dtd = tamis.read_dtd((data / "nitf" / "nitf-2-5.dtd").read_bytes())
    assert len(dtd.elements) == 123
    assert dtd.roots == ("nitf",)
