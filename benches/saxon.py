"""Saxon's XQuery, one transformation after the other: its time and its outputs."""

from collections.abc import Sequence
from typing import Any

from lxml import etree

import tamis
from benches.checks import Confirmation
from benches.oracle import QUERIES, spread
from tamis.bench.measure import array, timed

DOCUMENTS = 50
"""Messages that Saxon evaluates each transformation on."""

# Evaluates a transformation on all messages in one go: a call costs more than what it evaluates.
EVALUATE = "declare variable $messages external; $messages ! ({query})"
# The same as texts with a character between them that stands in no message.
SERIALIZE = (
    "declare variable $messages external; string-join($messages ! serialize(({query}), "
    "map {{ 'method': 'xml', 'omit-xml-declaration': true() }}), '&#xE000;')"
)


class Saxon:
    """Messages, each parsed once for all transformations."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        from saxonche import PySaxonProcessor  # type: ignore[import-not-found]

        self.processor = PySaxonProcessor(license=False)
        self.messages = messages
        # A sequence does not keep its documents alive: this does.
        self.documents = self._parse()
        self.queries = self.processor.new_xquery_processor()
        for name, value in {"method": "text", "omit-xml-declaration": "yes", "indent": "no"}.items():
            self.queries.set_property(f"!{name}", value)

    def each_s(self, queries: Sequence[str], rounds: int) -> float:
        """Seconds that all transformations take on one message: parsed once, evaluated and serialized.

        A query is compiled whenever it is run; what that takes is seen on no messages at all. Of each part
        the shortest round counts: a difference of single times can be below zero on a busy machine.
        """
        self.queries.set_property("!method", "xml")
        everything, nothing = self._sequence(self.documents), self._sequence([])
        parsing = seconds = compiling = float("inf")
        for _ in range(rounds):
            parsing = min(parsing, timed(self._parse)[0])
            seconds = min(seconds, timed(self._run, queries, everything)[0])
            compiling = min(compiling, timed(self._run, queries, nothing)[0])
        return (parsing + seconds - compiling) / len(self.documents)

    def outputs(self, query: str) -> list[str]:
        """The output of a transformation on each message; empty if there is none."""
        self.queries.set_property("!method", "text")
        self._messages = self._sequence(self.documents)
        self.queries.set_parameter("messages", self._messages)
        self.queries.set_query_content(SERIALIZE.format(query=query))
        return str(self.queries.run_query_to_string() or "").split("\ue000")

    def _parse(self) -> list[Any]:
        return [self.processor.parse_xml(xml_text=message.decode()) for message in self.messages]

    def _run(self, queries: Sequence[str], messages: Any) -> None:
        self.queries.set_parameter("messages", messages)
        for query in queries:
            self.queries.set_query_content(EVALUATE.format(query=query))
            self.queries.run_query_to_string()

    def _sequence(self, documents: Sequence[Any]) -> Any:
        sequence = self.processor.empty_sequence()
        for document in documents:
            sequence.add_xdm_item(document)
        return sequence


def confirm(index: tamis.Index, messages: Sequence[bytes], queries: Sequence[str]) -> Confirmation:
    """Compare what the whole index makes of some messages with what Saxon does.

    Chosen as `benches.oracle` chooses: half of the transformations are among those that match.
    """
    chosen = spread(messages, DOCUMENTS)
    made = index.transform_batch(array(chosen))
    found: dict[tuple[int, int], bytes] = {}
    for row, targets in zip(made.made.to_pylist(), index.targets(made.made).to_pylist(), strict=True):
        output = b"" if row["output"] is None else made.outputs[row["output"]].as_py()
        found.update({(row["message"], target): output for target in targets or ()})
    lines = set(spread(sorted({line for _, line in found}), QUERIES // 2))
    others = [line for line in range(1, len(queries) + 1) if line not in lines]
    lines.update(spread(others, QUERIES - len(lines)))
    saxon = Saxon(chosen)
    results = 0
    differences: list[str] = []
    for line in sorted(lines):
        for number, expected in enumerate(saxon.outputs(queries[line - 1])):
            output = found.get((number, line), b"").decode()
            results += bool(expected)
            if output != expected and _canonical(output) != _canonical(expected):
                differences.append(f"transformation {line}, document {number}: {output} is not {expected}")
    return Confirmation(len(lines) * len(chosen), results, tuple(differences))


def _canonical(output: str) -> str:
    """The same text for the same elements: `<a></a>` as it stands in a message is `<a/>` to Saxon."""
    return str(etree.canonicalize(f"<output>{output}</output>"))
