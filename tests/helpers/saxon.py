"""Saxon as the oracle of transformations and XPath 2.0: its results, and their comparison with tamis."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lxml import etree

from tests.helpers.engines import Answer
from tests.helpers.saxon_query import EACH_MESSAGE, as_written, declarations
from tests.helpers.xquery import spelled

CODES = {"XQDY0025": "duplicate-attribute", "XQTY0024": "attribute-place"}
"""Errors of XQuery that are errors here too."""

GENERATED = re.compile(r"(.*)_\d+")
"""A prefix that was made up, because the message's own stands for something else already. When that is
so, and what it is then, is left to each implementation."""


@cache
def _processor() -> Any:
    from saxonche import PySaxonProcessor  # type: ignore[import-not-found]

    return PySaxonProcessor(license=False)


class Saxon:
    """Messages to evaluate expressions and transformations on."""

    def __init__(
        self,
        messages: Sequence[bytes],
        data: Mapping[str, Sequence[bytes]] | None = None,
        envelopes: Sequence[bytes] = (),
    ) -> None:
        """`envelopes` are documents: `<envelope>` around the nodes of `$envelope`, or another element."""
        processor = _processor()
        self.queries = processor.new_xquery_processor()
        self.messages = len(messages)
        # A sequence does not keep its documents alive, nor the processor its parameters: this does.
        self.kept: list[Any] = []
        self.variables = [f"data-{name}" for name in data or {}]
        given = {"messages": messages, "envelopes": envelopes}
        given |= {f"data-{name}": records for name, records in (data or {}).items()}
        for name, texts in given.items():
            documents = [processor.parse_xml(xml_text=text.decode()) for text in texts]
            sequence = processor.empty_sequence()
            for document in documents:
                sequence.add_xdm_item(document)
            self.kept += [documents, sequence]
            self.queries.set_parameter(name, sequence)

    def conditions(self, prolog: str, condition: str) -> list[bool]:
        """For each message, whether an XPath expression is true of it. An error is false."""
        prolog += declarations(self.variables)
        self.queries.set_query_content(
            f"{prolog} {EACH_MESSAGE} return try {{ $doc/boolean({condition}) }} catch * {{ false() }}"
        )
        found = self.queries.run_query_to_value()
        return [found.item_at(place).boolean_value for place in range(found.size)]

    def answer(self, prolog: str, conditions: Sequence[str]) -> Answer:
        """For each message, which XPath expressions are true of it, by their places. An error is false."""
        matched: Answer = [set() for _ in range(self.messages)]
        for place, condition in enumerate(conditions):
            for message, holds in enumerate(self.conditions(prolog, condition)):
                if holds:
                    matched[message].add(place)
        return matched

    def outputs(self, query: str, namespaces: Mapping[str, str] | None) -> list["Result"]:
        """The output of a transformation for each message; `None`: it is XQuery without changes."""
        asked = as_written(query, self.variables) if namespaces is None else spelled(query, namespaces)
        self.queries.set_query_content(asked)
        return [Result.of(element) for element in etree.fromstring(self.queries.run_query_to_string())]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """An output, nothing, or an error; outputs are the same if they are the same tree."""

    tree: etree._Element | None = None
    code: str | None = None

    @staticmethod
    def of(element: etree._Element) -> "Result":
        """From an element `oracle`, `nothing` or `error`."""
        if element.tag == "error":
            return Result(code=CODES.get(str(element.text), element.text))
        return Result(tree=element if element.tag == "oracle" else None)

    @staticmethod
    def by(output: bytes | None, code: str | None) -> "Result":
        """From what an engine gives."""
        tree = None if output is None else etree.fromstring(b"<oracle>" + output + b"</oracle>")
        return Result(tree, code)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result) or self.code != other.code:
            return False
        if self.tree is None or other.tree is None:
            return self.tree is other.tree
        return _canonical(self.tree) == _canonical(other.tree) or _alike(self.tree, other.tree)

    def __str__(self) -> str:
        return "nothing" if self.tree is None and self.code is None else self.code or _canonical(self.tree)


def _canonical(tree: Any) -> str:
    """Canonical XML: the same text for the same tree, the namespaces in scope included."""
    text = etree.tostring(tree, method="c14n", with_tail=False).decode()
    assert isinstance(text, str)
    return text


def _alike(one: etree._Element, other: etree._Element) -> bool:
    """Whether two trees differ in generated prefixes only, and in prefixes that were renamed."""
    made_up = [found for prefix in (*one.nsmap, *other.nsmap) if (found := GENERATED.fullmatch(prefix or ""))]
    free = {prefix for found in made_up for prefix in (found[0], found[1])}
    return (
        _node(one, free) == _node(other, free)
        and len(one) == len(other)
        and all(_alike(*children) for children in zip(one, other, strict=True))
    )


def _node(node: etree._Element, free: set[str]) -> tuple[object, ...]:
    # `xmlns=""` where there is no default namespace says nothing.
    scope = {prefix: uri for prefix, uri in node.nsmap.items() if uri and prefix not in free}
    target = getattr(node, "target", None)
    return node.tag, sorted(node.attrib.items()), node.text or "", node.tail or "", scope, target
