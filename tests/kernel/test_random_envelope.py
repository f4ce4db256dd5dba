"""`$envelope` in random queries: every engine against lxml, and against Saxon for what XPath 2.0 adds.

lxml has the envelope as a document of its own, and its root as a variable; Saxon as an external variable.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from lxml import etree

import tamis
from tamis import Envelope
from tests.helpers import random_documents as documents
from tests.helpers import random_xpath2 as xpath2
from tests.helpers.engines import Answer
from tests.helpers.random_runs import SEED, assert_engines_agree, by_lxml, covered, pairs_wanted
from tests.helpers.saxon import Result, Saxon
from tests.kernel.test_random import Group

PAIRS = pairs_wanted(40_000)
DOCUMENTS = 16

NAMES = ("a", "b", "c", "priority")
VALUES = ("", "high", "low", "1", "2", "10", "é<&>\"'", "high low")
SOURCES = (None, "feed", "high")

CONDITIONS: tuple[Callable[[Random], str], ...] = (
    lambda r: f"$envelope/header[@name = '{r.choice(NAMES)}'] = '{r.choice(VALUES[:5])}'",
    lambda r: f"$envelope/header[@name = '{r.choice(NAMES)}'] != '{r.choice(VALUES[:5])}'",
    lambda r: f"$envelope/header[@name = '{r.choice(NAMES)}'] < {r.choice((1, 2, 5, 11))}",
    lambda r: f"$envelope/header[@name = '{r.choice(NAMES)}']",
    lambda r: f"$envelope/header[. = '{r.choice(VALUES[:5])}']/@name = '{r.choice(NAMES)}'",
    lambda r: f"not($envelope/header[@name = '{r.choice(NAMES)}'])",
    lambda r: f"$envelope/header[{r.choice((1, 2, 3))}]/@name = '{r.choice(NAMES)}'",
    lambda r: f"$envelope/source = '{r.choice(('feed', 'high'))}'",
    lambda r: f"$envelope/{r.choice(('topic', 'source', 'received', 'header', '*', 'other'))}",
    lambda r: f"count($envelope/header) > {r.choice((0, 1, 2, 3))}",
    lambda r: f"count($envelope//*) {r.choice(('>', '='))} {r.choice((2, 3, 4))}",
    lambda r: f"$envelope//@name = '{r.choice(NAMES)}'",
    lambda r: f"$envelope//text() = '{r.choice(VALUES[1:5])}'",
    lambda r: f"string($envelope/header[@name = '{r.choice(NAMES)}']) = '{r.choice(VALUES[:5])}'",
    lambda r: f"contains($envelope/header[@name = '{r.choice(NAMES)}'], '{r.choice(('hi', 'low', '1'))}')",
    lambda r: f"starts-with($envelope/{r.choice(('source', 'header'))}, '{r.choice(('hi', 'f', '1'))}')",
    lambda r: f"$envelope/header/following-sibling::header[@name = '{r.choice(NAMES)}']",
    lambda r: (
        f"$envelope/header[@name = '{r.choice(NAMES)}']/preceding::{r.choice(('source', '*', 'header'))}"
    ),
    lambda r: f"$envelope/source/following::{r.choice(('topic', '*', 'header', 'node()'))}",
    lambda r: f"count($envelope/source/following::*) = {r.choice((1, 2, 3))}",
    lambda r: f"count($envelope/header[last()]/preceding::node()) > {r.choice((2, 4, 6))}",
    lambda r: f"$envelope/header/../source = '{r.choice(('feed', 'high'))}'",
    lambda r: f"$envelope/header/ancestor::node()[source = '{r.choice(('feed', 'high'))}']",
    lambda r: f"$envelope/header[following::header[@name = '{r.choice(NAMES)}']]",
    lambda r: f"$envelope[header[@name = '{r.choice(NAMES)}']][source]",
    lambda r: f"$envelope/descendant::header[@name = '{r.choice(NAMES)}']",
    lambda r: f"$envelope/descendant-or-self::node()[@name = '{r.choice(NAMES)}']",
    lambda r: f"name($envelope/*[{r.choice((1, 2, 3))}]) = '{r.choice(('source', 'topic', 'header'))}'",
    lambda r: f"local-name($envelope/*[last()]) = '{r.choice(('source', 'topic', 'header'))}'",
    lambda r: f"sum($envelope/header[number(.) = number(.)]) > {r.choice((0, 1, 5))}",
    lambda r: f"string-length($envelope) > {r.choice((4, 10, 20))}",
    lambda r: "$envelope/header = //*",
    lambda r: "$envelope/header = //@*",
    lambda r: "count(//* | $envelope//*) = count(//*)",
    lambda r: "boolean($envelope)",
    lambda r: "not($envelope)",
)


def envelope(random: Random) -> Envelope | None:
    if random.random() < 0.1:
        return None
    names = random.sample(NAMES, random.randrange(len(NAMES) + 1))
    headers = {name: random.choice(VALUES) for name in names}
    received = datetime(2026, 1, 31, 12, 30, tzinfo=UTC) if random.random() < 0.5 else None
    return Envelope(random.choice(SOURCES), random.choice((None, "t")), received, headers)


def tree_of(given: Envelope) -> Any:
    """The envelope as lxml has it: an element around its nodes."""
    root = etree.Element("envelope")
    for name in ("source", "topic"):
        if getattr(given, name) is not None:
            etree.SubElement(root, name).text = getattr(given, name)
    if given.received_text is not None:
        etree.SubElement(root, "received").text = given.received_text
    for name, value in given.headers.items():
        etree.SubElement(root, "header", name=name).text = value or None
    return root


def query(random: Random, of_message: str) -> str:
    """A condition on the envelope, alone or together with one on the message."""
    condition = random.choice(CONDITIONS)(random)
    match random.randrange(6):
        case 0:
            return f"({of_message}) and {condition}"
        case 1:
            return f"({of_message}) or {condition}"
        case 2:
            return f"//*[{condition}]/{random.choice(('*', '@*', 'text()'))}"
        case 3:
            return f"not({condition}) and {random.choice(CONDITIONS)(random)}"
        case 4:
            return f"{condition} and {random.choice(CONDITIONS)(random)}"
        case _:
            return condition


def test_every_engine_agrees_with_lxml() -> None:
    random = Random(SEED)
    pairs = true = 0
    while pairs < PAIRS:
        group = Group(random)
        of_message = [one for one in group.queries if "$" not in one.text]
        drawn = [random.choice(of_message) for _ in range(240)]
        texts = []
        oracles = []
        for one in drawn:
            state = random.getstate()
            texts.append(query(random, one.text))
            random.setstate(state)
            oracles.append(query(random, f"boolean({one.oracle})").replace("$envelope", "$e"))
        # Queries without `$envelope` have the same answers.
        texts += group.texts
        oracles += [one.oracle for one in group.queries]
        envelopes = [envelope(random) for _ in group.messages]
        variables = [{"e": [] if given is None else [tree_of(given)]} for given in envelopes]
        expected = by_lxml(oracles, group.messages, variables)
        assert_engines_agree(texts, group.messages, expected, "lxml", envelopes)
        true += sum(map(len, expected))
        pairs += len(texts) * len(group.messages)
    assert 0.1 < true / pairs < 0.9


def with_saxon(messages: list[bytes], envelopes: list[Envelope | None]) -> Saxon:
    """Saxon with the envelopes of messages."""
    texts = [b"<none/>" if given is None else etree.tostring(tree_of(given)) for given in envelopes]
    return Saxon(messages, envelopes=texts)


def test_every_engine_agrees_with_saxon(capsys: pytest.CaptureFixture[str]) -> None:
    def batches() -> Iterator[tuple[list[xpath2.Query], Answer]]:
        random = Random(SEED)
        while True:
            roots = [documents.document(random) for _ in range(DOCUMENTS)]
            messages = [documents.serialise(random, root) for root in roots]
            envelopes = [envelope(random) for _ in messages]
            queries = [xpath2.query(random, name, xpath2.ENVELOPE_PATHS) for name in xpath2.PRODUCTIONS * 2]
            saxon = with_saxon(messages, envelopes)
            expected = saxon.answer(xpath2.PROLOG, [one.saxon for one in queries])
            assert_engines_agree([one.text for one in queries], messages, expected, "Saxon", envelopes)
            yield queries, expected

    coverage = covered(capsys, "envelopes", PAIRS, xpath2.PRODUCTIONS, batches)
    if coverage.pairs >= 40_000:
        coverage.assert_each(20)


TRANSFORMATIONS = (
    "for $h in $envelope/header return <h>{ $h/@name }{ $h/text() }</h>",
    "for $h in $envelope/header order by string($h) descending, $h/@name return <h n='{ $h/@name }'/>",
    "for $h in $envelope/header[@name = 'priority'], $a in //* return <r>{ $a/@*, string($h) }</r>",
    "for $a in //a where $envelope/source = 'feed' return <r n='{ count($envelope/*) }'>{ $a/@x }</r>",
    "for $a in //*, $h in $envelope/header where $a/@x = $h return <r>{ $h/@name }{ $a/text() }</r>",
    "<all>{ for $h in $envelope//header return <h>{ concat($h/@name, ':', $h) }</h> }</all>",
    "for $h in $envelope/* let $n := count($h/preceding-sibling::*) where $n > 1 return $h",
)


@pytest.mark.parametrize("text", TRANSFORMATIONS)
def test_transformations_make_what_saxon_makes(text: str) -> None:
    random = Random(SEED)
    messages = [documents.serialise(random, documents.document(random)) for _ in range(100)]
    envelopes = [envelope(random) for _ in messages]
    index = tamis.Index()
    index.insert(0, text)
    made = 0
    expected = with_saxon(messages, envelopes).outputs(text, None)
    for message, given, right in zip(messages, envelopes, expected, strict=True):
        outputs = index.transform(message, envelope=given)
        got = Result.by(outputs[0].payload, outputs[0].code) if outputs else Result()
        # Without a tuple, there is no output.
        if right.tree is not None and not right.tree.xpath("*[name() != 'all' or *]"):
            right = Result()
        assert got == right, f"seed {SEED}: {message!r} in {given}\nsaxon {right}\ntamis {got}"
        made += got.tree is not None
    assert made >= 4
