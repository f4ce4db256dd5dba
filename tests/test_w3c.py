"""The W3C XML suite: the verdicts of its catalogue, and of accepted documents the content that expat finds.

The internal subset is allowed, for nearly all cases carry one. `w3c_exceptions.toml` says which cases are
not as the catalogue has them, and why; an exception that is no longer needed is an error too.
"""

import tarfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.parsers import expat

import pyarrow as pa
import pytest
from lxml import etree

import tamis

Event = tuple[str, ...]
"""`("start", name, attribute, value, …)`, `("text", text)` or `("end",)`; names as `{namespace}local`."""

pytestmark = pytest.mark.data

LIMITS = tamis.Limits(internal_subset=True, name=1 << 13)
"""Two cases have names of some thousand bytes."""

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "w3c_exceptions.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Case:
    """One document of the suite with its entry in the catalogue."""

    id: str
    entry: dict[str, str]
    message: bytes

    @property
    def verdict(self) -> str | None:
        """What the catalogue wants; `None` where either will do."""
        return {"valid": "accepted", "invalid": "accepted", "not-wf": "refused"}.get(self.entry["TYPE"])


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    """All cases of the catalogue."""
    with tarfile.open(data / "xmlconf" / "xmlconf.tar.gz") as archive:
        members = ((member.name, archive.extractfile(member)) for member in archive if member.isfile())
        files = {PurePosixPath(name).relative_to("xmlconf"): file.read() for name, file in members if file}
    return list(catalogue(files))


def catalogue(files: dict[PurePosixPath, bytes]) -> Iterator[Case]:
    """The entries of the catalogue, which is one document in many files."""
    cases: list[Case] = []

    def follow(context: str, base: str | None, system: str | None, public: str | None) -> int:
        part = parser.ExternalEntityParserCreate(context)
        folder = PurePosixPath(system or "").parent

        def start(name: str, entry: dict[str, str]) -> None:
            if name == "TEST":
                cases.append(Case(entry["ID"], entry, files[folder / entry["URI"]]))

        part.StartElementHandler = start
        part.Parse(files[PurePosixPath(system or "")], True)
        return 1

    parser = expat.ParserCreate()
    parser.ExternalEntityRefHandler = follow
    parser.Parse(files[PurePosixPath("xmlconf.xml")], True)
    yield from cases


@pytest.fixture(scope="module")
def results(cases: list[Case]) -> list[list[Event] | str]:
    """Of each case the content, or the code of the error."""
    batch = tamis.read_batch([case.message for case in cases], LIMITS)
    results: list[list[Event] | str] = [[] for _ in cases]
    for message, code in rows(batch.errors, "message", "code"):
        results[message] = code
    attributes: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for message, node, *name, value in rows(
        batch.attributes, "message", "node", "namespace", "name", "value"
    ):
        attributes.setdefault((message, node), []).append((expanded(*name), value))
    ends: dict[int, list[int]] = {}
    for message, node, end, kind, *name, value in rows(
        batch.nodes, "message", "node", "end", "kind", "namespace", "name", "value"
    ):
        events, open_ends = results[message], ends.setdefault(message, [])
        assert isinstance(events, list)
        while open_ends and open_ends[-1] <= node:
            open_ends.pop()
            events.append(("end",))
        if kind == "element":
            events.append(start(expanded(*name), attributes.get((message, node), [])))
            open_ends.append(end)
        elif kind == "text":
            add_text(events, value)
    for message, open_ends in ends.items():
        events = results[message]
        assert isinstance(events, list)
        events.extend(("end",) for _ in open_ends)
    return results


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
    """What expat finds with no handler for external entities; parameter entities are read."""
    events: list[Event] = []

    def start_element(name: str, flat: list[str]) -> None:
        pairs = zip(flat[::2], flat[1::2], strict=True)
        events.append(start(clark(name), [(clark(attribute), value) for attribute, value in pairs]))

    def clark(name: str) -> str:
        namespace, _, local = name.rpartition("\n")
        return expanded(namespace, local)

    parser = expat.ParserCreate(namespace_separator="\n")
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


def test_the_verdicts_are_those_of_the_catalogue(cases: list[Case], results: list[list[Event] | str]) -> None:
    listed = {id: exception["verdict"] for exception in EXCEPTIONS["verdict"] for id in exception["cases"]}
    wrong, excused = {}, set()
    for case, result in zip(cases, results, strict=True):
        found = "refused" if isinstance(result, str) else "accepted"
        if case.verdict in (None, found):
            continue
        if listed.get(case.id) == found:
            excused.add(case.id)
        elif not any(applies(rule, case) for rule in EXCEPTIONS["elsewhere"]):
            wrong[case.id] = f"{case.entry['TYPE']}, but {result if found == 'refused' else found}"
    assert wrong == {}
    assert listed.keys() - excused == set(), "exceptions that are not needed"
    assert len(cases) > 2500


def test_accepted_documents_have_the_content_that_expat_finds(
    cases: list[Case], results: list[list[Event] | str]
) -> None:
    by_other = {id for exception in EXCEPTIONS["content"] for id in exception.get("cases", [])}
    different: dict[str, tuple[list[Event], list[Event] | str]] = {}
    compared, needed = 0, set()
    for case, result in zip(cases, results, strict=True):
        if isinstance(result, str):
            continue
        try:
            expected = by_expat(case.message)
        except expat.ExpatError as error:
            if case.id in by_other:
                needed.add(case.id)
            elif any(applies(rule, case) for rule in EXCEPTIONS["content"]):
                expected = by_lxml(case.message)
                compared += 1
                if result != expected:
                    different[case.id] = (result, expected)
            elif not any(applies(rule, case) for rule in EXCEPTIONS["elsewhere"]):
                different[case.id] = (result, str(error))
            continue
        compared += 1
        if result != expected:
            different[case.id] = (result, expected)
    assert different == {}
    assert by_other == needed, "exceptions that are not needed"
    assert compared > 900


def applies(rule: dict[str, str | list[str]], case: Case) -> bool:
    """Whether a rule speaks of a case: by what its catalogue entry has under the rule's keys."""
    keys = [key for key in rule if key.isupper()]
    return bool(keys) and all(case.entry.get(key) in rule[key] for key in keys)
