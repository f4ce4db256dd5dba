"""The content of a message by the kernel, expat and lxml, in one comparable form."""

from collections.abc import Iterator, Sequence
from xml.parsers import expat

import pyarrow as pa
from lxml import etree

import tamis

Event = tuple[str, ...]
"""`("start", name, attribute, value, …)`, `("text", text)` or `("end",)`; names as `{namespace}local`."""

SEPARATOR = "\x1f"
"""Between the parts of a name as expat gives it: no document contains this."""


def by_kernel(messages: Sequence[bytes], limits: tamis.Limits) -> list[list[Event] | str]:
    """The content of each message, or the code of its error."""
    batch = tamis.read_batch(messages, limits)
    codes = dict(rows(batch.errors, "message", "code"))
    attributes: dict[tuple[int, int], list[tuple[str, str]]] = {}
    of_attribute = ("message", "node", "namespace", "name", "value")
    for message, node, *name, value in rows(batch.attributes, *of_attribute):
        attributes.setdefault((message, node), []).append((expanded(*name), value))
    contents: list[list[Event]] = [[] for _ in messages]
    ends: list[list[int]] = [[] for _ in messages]
    of_node = ("message", "node", "end", "kind", "namespace", "name", "value")
    for message, node, end, kind, *name, value in rows(batch.nodes, *of_node):
        events, open_ends = contents[message], ends[message]
        while open_ends and open_ends[-1] <= node:
            open_ends.pop()
            events.append(("end",))
        if kind == "element":
            events.append(start(expanded(*name), attributes.get((message, node), [])))
            open_ends.append(end)
        elif kind == "text":
            add_text(events, value)
    for events, open_ends in zip(contents, ends, strict=True):
        events.extend(("end",) for _ in open_ends)
    return [codes.get(message, events) for message, events in enumerate(contents)]


def rows(table: pa.RecordBatch, *columns: str) -> Iterator[tuple]:  # type: ignore[type-arg]
    """The rows of a table as tuples."""
    return zip(*(table.column(column).to_pylist() for column in columns), strict=True)


def expanded(namespace: str, local: str) -> str:
    return f"{{{namespace}}}{local}" if namespace else local


def start(name: str, attributes: list[tuple[str, str]]) -> Event:
    """The order of attributes means nothing."""
    return ("start", name, *(part for attribute in sorted(attributes) for part in attribute))


def add_text(events: list[Event], text: str | None) -> None:
    """Text on either side of a comment is compared as one."""
    if text and events and events[-1][0] == "text":
        events[-1] = ("text", events[-1][1] + text)
    elif text:
        events.append(("text", text))


def by_expat(message: bytes) -> list[Event]:
    """The content by expat, without a handler for external entities; parameter entities are read."""
    events: list[Event] = []

    def start_element(name: str, flat: list[str]) -> None:
        pairs = zip(flat[::2], flat[1::2], strict=True)
        events.append(start(clark(name), [(clark(attribute), value) for attribute, value in pairs]))

    def clark(name: str) -> str:
        namespace, _, local = name.rpartition(SEPARATOR)
        return expanded(namespace, local)

    parser = expat.ParserCreate(namespace_separator=SEPARATOR)
    parser.ordered_attributes = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.StartElementHandler = start_element
    parser.EndElementHandler = lambda name: events.append(("end",))
    parser.CharacterDataHandler = lambda text: add_text(events, text)
    parser.Parse(message, True)
    return events


def by_lxml(message: bytes) -> list[Event]:
    """The same by libxml2, which knows the names of the fifth edition."""
    parser = etree.XMLParser(no_network=True, load_dtd=False, resolve_entities=True)
    events: list[Event] = []
    for event, node in etree.iterwalk(
        etree.fromstring(message, parser), events=("start", "end", "comment", "pi")
    ):
        if event == "start":
            events.append(start(str(node.tag), [(str(name), str(value)) for name, value in node.items()]))
            add_text(events, node.text)
            continue
        if event == "end":
            events.append(("end",))
        if node.getparent() is not None:
            add_text(events, node.tail)
    return events
