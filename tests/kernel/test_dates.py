"""`xs:date()` and `xs:dateTime()`: random comparisons, every engine against Python's `datetime`."""

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pytest

import tamis
from tests.helpers.engines import ENGINES

OPERATORS: dict[str, Callable[[datetime, datetime], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NO_MOMENTS = ("", "x", "5", "2026-02-30", "2026-13-01", "01.02.2026", "2026-02-01T", "2026-2-1")


def moment(random: Random) -> datetime:
    """Few days and zones, so that moments are often equal."""
    zone = timezone(timedelta(minutes=random.choice((0, 0, 60, -330))))
    day = datetime(2026, random.choice((1, 2, 12)), random.randint(1, 3), tzinfo=zone)
    return day + timedelta(hours=random.choice((0, 0, 1, 23)), milliseconds=random.choice((0, 0, 500)))


def written(random: Random, value: datetime, kind: str) -> str:
    """One way to write a moment; UTC may be left out."""
    zone = value.isoformat()[-6:] if value.utcoffset() else random.choice(("", "Z", "+00:00"))
    spaces = random.choice(("", "", " "))
    if kind == "xs:date":
        return f"{spaces}{value:%Y-%m-%d}{zone}{spaces}"
    fraction = random.choice((".5", ".500")) if value.microsecond else random.choice(("", ".0"))
    return f"{spaces}{value:%Y-%m-%dT%H:%M:%S}{fraction}{zone}{spaces}"


def as_compared(value: datetime, kind: str) -> datetime:
    """A date is the start of its day."""
    if kind == "xs:date":
        value = value.replace(hour=0, minute=0, second=0, microsecond=0)
    return value.astimezone(UTC)


@pytest.mark.parametrize("kind", ["xs:date", "xs:dateTime"])
@pytest.mark.parametrize("path", ["//a/@d", "//a/text()", "//a/b"])
def test_every_engine_compares_moments_as_datetime_does(kind: str, path: str) -> None:
    random = Random(f"{kind} {path}")
    values = [moment(random) if random.random() < 0.8 else None for _ in range(40)]
    texts = [random.choice(NO_MOMENTS) if value is None else written(random, value, kind) for value in values]
    content = {"//a/@d": "<a d='{}'/>", "//a/text()": "<a>{}</a>", "//a/b": "<a><b>{}</b></a>"}[path]
    messages = [f"<r>{content.format(text)}</r>".encode() for text in texts]
    queries, expected = [], []
    for symbol, holds in OPERATORS.items():
        for _ in range(8):
            constant = moment(random)
            literal = f"{kind}('{written(random, constant, kind)}')"
            computed = f"{kind}({path})"
            queries.append(f"{computed} {symbol} {literal}")
            right = as_compared(constant, kind)
            expected.append(
                {
                    place
                    for place, value in enumerate(values)
                    if value is not None and holds(as_compared(value, kind), right)
                }
            )
            mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(symbol, symbol)
            queries.append(f"{literal} {mirrored} {computed}")
            expected.append(expected[-1])
    for name, engine in ENGINES.items():
        matched = engine(queries, messages, {})
        for place, query in enumerate(queries):
            got = {message for message, found in enumerate(matched) if place in found}
            assert got == expected[place], (name, query)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("xs:date(//a) > 5", "type"),
        ("xs:date(//a) > //b", "type"),
        ("xs:date(//a) > xs:dateTime(//b)", "type"),
        ("count(xs:date(//a)) = 1", "type"),
        ("xs:date(//a) + 1 > 2", "type"),
        ("-xs:date(//a) > 2", "type"),
        ("xs:date('2026-02-30') = xs:date(//a)", "argument"),
        ("xs:date() = xs:date(//a)", "argument"),
        ("xs:time(//a) = 1", "unknown-function"),
        ("x:date(//a) = 1", "unbound-prefix"),
    ],
)
def test_invalid_uses_of_dates_are_refused(query: str, code: str) -> None:
    with pytest.raises(tamis.QueryError) as refused:
        tamis.check(query)
    assert refused.value.code == code


def test_the_prefix_may_be_bound_to_the_namespace_of_types() -> None:
    types = {"t": "http://www.w3.org/2001/XMLSchema", "f": "http://www.w3.org/2005/xpath-functions"}
    query = tamis.check("t:date(//a) = t:date('2026-01-01') and f:count(//a) = 2", types)
    assert query.canonical == "count(//a)=2 and xs:date(//a)=xs:date('2026-01-01')"
    with pytest.raises(tamis.QueryError):
        tamis.check("xs:date(//a) = xs:date('2026-01-01')", {"xs": "urn:other"})
