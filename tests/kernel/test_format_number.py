"""`format-number()`: random numbers by random pictures, every engine against Saxon; bad pictures refused."""

from random import Random

import pytest

import tamis
from tests.helpers.engines import ENGINES, TRANSFORMERS
from tests.helpers.random_runs import SEED
from tests.helpers.saxon import Result, Saxon

PICTURES = 500
VALUES = (
    "0",
    "-0",
    "0.5",
    "-0.5",
    "1.5",
    "2.5",
    "0.285",
    "1.005",
    "0.07",
    "99.95",
    "999.995",
    "x",
    "",
    " 12 ",
)


def number(random: Random) -> str:
    if random.random() < 0.3:
        return random.choice(VALUES)
    digits = "".join(random.choice("0123456789") for _ in range(random.randint(1, 12)))
    point = random.randint(0, len(digits))
    return random.choice(("", "-")) + digits[:point] + random.choice(("", ".")) + digits[point:]


def sub_picture(random: Random) -> str:
    """Mostly a valid one."""
    optional, needed = random.randint(0, 4), random.randint(0, 4)
    integer = "#" * optional + "".join(random.choice("00019") for _ in range(needed))
    fraction = "0" * random.randint(0, 3) + "#" * random.randint(0, 3)
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        at = random.randint(0, len(integer))
        integer = integer[:at] + "," + integer[at:]
    if random.random() < 0.15:
        at = random.randint(0, len(fraction))
        # No `,`: in the fractions of some numbers, Saxon 12 writes it elsewhere than at its place.
        fraction = fraction[:at] + random.choice("#0") + fraction[at:]
    digits = integer + ("." + fraction if fraction or random.random() < 0.1 else "")
    before, after = random.choice(("", "", "$", "-", "a ")), random.choice(("", "", "%", "‰", " EUR", "é"))
    return before + digits + after


def picture(random: Random) -> str:
    if random.random() < 0.05:
        return random.choice(
            ("", ";", "0;0;0", "0;", ".", "%", "0.0.0", "%0‰", "0%%", "0 0", "a", "#.", ",0")
        )
    return sub_picture(random) + (f";{sub_picture(random)}" if random.random() < 0.3 else "")


def test_every_engine_writes_what_saxon_writes() -> None:
    random = Random(SEED)
    accepted: list[str] = []
    refused = 0
    numbers = [number(random) for _ in range(200)]
    message = f"<r>{''.join(f'<n>{value}</n>' for value in numbers)}</r>".encode()
    saxon = Saxon([message])
    expected: list[list[Result]] = []
    for _ in range(PICTURES):
        drawn = picture(random)
        text = f"for $n in //n return <o>{{ format-number($n, '{drawn}') }}</o>"
        # A picture that Saxon does not know before it runs: an error is a result then.
        asked = text.replace("//n", "$doc//n").replace("($n, ", "(local:number($n), ")
        right = saxon.outputs(asked.replace(f"'{drawn}'", f"concat('{drawn}', $doc/r/@none)"), None)
        if right[0].code is not None:
            with pytest.raises(tamis.QueryError) as refusal:
                tamis.check(text)
            assert refusal.value.code == "picture", drawn
            refused += 1
            continue
        accepted.append(text)
        expected.append(right)
    assert len(accepted) >= 300
    assert refused >= 50
    for name, transform in TRANSFORMERS.items():
        made = transform(accepted, [message], {})[0]
        for text, (of_message,), given in zip(accepted, expected, made, strict=True):
            got = Result.by(*given)
            difference = f"{name} (seed {SEED}): {text}\nsaxon {of_message}\ntamis {got}"
            assert got == of_message, difference


def test_it_is_a_string_in_filters_too() -> None:
    queries = ["format-number(//n, '#,##0.00') = '1,234.50'", "format-number(//n, '0') = '1234.5'", "//n"]
    for name, engine in ENGINES.items():
        assert engine(queries, [b"<n>1234.5</n>"], {}) == [{0, 2}], name


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("format-number(//n, //p)", "picture"),
        ("format-number(//n, concat('0', '0'))", "picture"),
        ("format-number(//n, '0e0')", "picture"),
        ("format-number(//n, '')", "picture"),
        ("format-number(//n)", "argument"),
        ("format-number(//n, '0', 'euro')", "argument"),
    ],
)
def test_pictures_are_checked_when_the_query_is_registered(call: str, code: str) -> None:
    with pytest.raises(tamis.QueryError) as refusal:
        tamis.check(f"{call} = '1'")
    assert refusal.value.code == code
    assert refusal.value.offset == 0


def test_the_canonical_text_keeps_the_picture() -> None:
    text = 'for $n in //n return <o>{ format-number( $n/@p,"#0;(0)" ) }</o>'
    canonical = tamis.check(text).canonical
    assert canonical == "for $v in //n return <o>{format-number($v/@p, '#0;(0)')}</o>"
    assert tamis.check(canonical).canonical == canonical
