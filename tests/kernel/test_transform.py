"""The outputs of transformations, as data: by every engine, and by Saxon."""

import tomllib
from typing import Any

import pytest

import tamis
from tamis import naive
from tests.helpers import CASES
from tests.helpers.engines import ENGINES, TRANSFORMERS
from tests.helpers.saxon import Result, Saxon


def cases() -> list[Any]:
    """All cases of all files, named after file and case."""
    found = []
    for path in sorted(CASES.glob("transform*.toml")):
        for case in tomllib.loads(path.read_text("utf-8")).get("transform", []):
            found.append(pytest.param(case, id=f"{path.stem}: {case['name']}"))
    return found


def expectations(case: dict[str, Any]) -> list[tuple[str, bytes | None, str | None]]:
    """Queries, each with its output or the code of why there is none."""
    outputs = [(query, output.encode(), None) for query, output in case.get("outputs", [])]
    errors = [(query, None, code) for query, code in case.get("errors", [])]
    return [*outputs, *errors, *((query, None, None) for query in case.get("nothing", []))]


@pytest.mark.parametrize("case", cases())
def test_every_engine_and_saxon_make_what_is_expected(case: dict[str, Any]) -> None:
    message, namespaces = case["xml"].encode(), case.get("namespaces", {})
    expected = expectations(case)
    queries = [query for query, _, _ in expected]
    for name, transform in TRANSFORMERS.items():
        (made,) = transform(queries, [message], namespaces)
        for (query, output, code), given in zip(expected, made, strict=True):
            assert given == (output, code), f"{name}: {query}"
    saxon = Saxon([message])
    for query, output, code in expected:
        (made_by_saxon,) = saxon.outputs(query, None if case.get("is_xquery") else namespaces)
        assert made_by_saxon == Result.by(output, code), query


@pytest.mark.parametrize("case", cases())
def test_a_transformation_matches_where_it_binds_something(case: dict[str, Any]) -> None:
    expected = expectations(case)
    binding = {place for place, (_, output, code) in enumerate(expected) if output is not None or code}
    for name, matches in ENGINES.items():
        (places,) = matches(
            [query for query, _, _ in expected], [case["xml"].encode()], case.get("namespaces", {})
        )
        assert places == binding, name


def test_messages_with_an_internal_subset() -> None:
    subset = b'<!ENTITY e "<b>&#38;amp;</b>"> <!ATTLIST a i CDATA "1">'
    message = b"<!DOCTYPE r [" + subset + b']><r xmlns:p="urn:p"><a>x&e;</a></r>'
    limits = tamis.Limits(internal_subset=True)
    queries = ["for $v in //a return $v", "for $v in //b return <o xmlns='urn:o'>{ $v }</o>"]
    ((copied, wrapped),) = naive.naive_transform(queries, [message], limits=limits)
    assert copied == (b'<a xmlns:p="urn:p" i="1">x<b>&amp;</b></a>', None)
    assert wrapped == (b'<o xmlns="urn:o"><b xmlns:p="urn:p" xmlns="">&amp;</b></o>', None)


def test_an_output_past_the_limit() -> None:
    message = b"<r>" + b"<a>0123456789</a>" * 100 + b"</r>"
    query = "for $v in //a return <o>{ $v }</o>"
    (((output, code),),) = naive.naive_transform([query], [message], output_limit=2400)
    assert (output is not None, code) == (True, None)
    assert naive.naive_transform([query], [message], output_limit=2399) == [[(None, "output-limit")]]
