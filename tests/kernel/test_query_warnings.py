"""Warnings about queries that are accepted but probably not intended."""

import pytest

import tamis


@pytest.mark.parametrize(
    ("query", "code", "column", "words"),
    [
        ("//a[@d > '2026-01-01']", "compares-numbers", 8, "`xs:date(…) > xs:date('2026-01-01')`"),
        ("'2026-01-01T10:00:00Z' <= //a/@d", "compares-numbers", 24, "xs:dateTime('2026-01-01T10:00:00Z')"),
        ("//a or //b < 'x'", "compares-numbers", 12, "never true"),
        ("for $a in //a where $a/@d >= 'x' return $a", "compares-numbers", 27, "never true"),
        ("1 = 2", "never-matches", 1, "never"),
        ("//a and false()", "never-matches", 1, "never"),
        ("//a or true()", "always-matches", 1, "every message"),
    ],
)
def test_the_warning_says_why(query: str, code: str, column: int, words: str) -> None:
    (warning,) = tamis.check(query).warnings
    assert (warning.code, warning.line, warning.column) == (code, 1, column)
    assert words in warning.reason


@pytest.mark.parametrize("query", ["//a[@d = '2026-01-01']", "//a > '5'", "//a", "not(//a)", "//a < //b"])
def test_plausible_queries_have_no_warning(query: str) -> None:
    assert tamis.check(query).warnings == ()
